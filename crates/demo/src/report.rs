//! The verdict as tables.

use crate::{
    acts::ACTS,
    verdict::{Handover, Row, Since, Verdict},
};
use std::{fmt::Write, time::Duration};

/// What comes after the tables, when nothing went wrong.
pub const LAST_WORDS: &str = "
Shown: all three replicas tried to write all the time. Only the one that held the Lease could, through every change.
Next: README.md has the smallest program, docs/GETTING_STARTED.md leads to two replicas of your own.
";

/// The tables, and what they mean.
pub fn report(verdict: &Verdict) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = write(&mut text, verdict);
    text
}

fn write(out: &mut String, verdict: &Verdict) -> std::fmt::Result {
    writeln!(out, "Judged by the server's write log.")?;
    writeln!(out)?;
    writeln!(out, "         writes seen by the server     stopped by the gate")?;
    writeln!(out, "replica  admitted  by a non-holder     rejected   cut off    failed     reads")?;
    for Row { name, admitted, by_non_holder, counts } in &verdict.rows {
        writeln!(
            out,
            "{name:<7} {admitted:>9} {by_non_holder:>16} {:>12} {:>9} {:>9} {:>9}",
            counts.rejected, counts.cut_off, counts.failed, counts.reads
        )?;
    }
    writeln!(out)?;
    writeln!(out, "failed: the API server did not answer")?;
    writeln!(out)?;
    writeln!(out, "act                 from     to       lease taken  first write  after")?;
    for it in &verdict.handovers {
        let act = ACTS.get(it.act).map_or("", |act| act.title);
        let from = it.from.as_deref().unwrap_or("-");
        let number = it.act + 1;
        let (taken, first_write) = (taken(it), it.first_write.map_or("-".to_owned(), millis));
        let since = words(it.since);
        writeln!(out, "{number} {act:<17} {from:<8} {:<8} {taken:>11} {first_write:>12}  {since}", it.to)?;
    }
    writeln!(out)?;
    if let Some(latest) = verdict.overtaken.iter().max() {
        writeln!(
            out,
            "Writes that the holder had sent before it could know of the theft or the deletion: {}, the last {} after it.",
            verdict.overtaken.len(),
            millis(*latest)
        )?;
    }
    for (offence, times) in &verdict.offences {
        writeln!(out, "OFFENCE, {times} times: {offence}")?;
    }
    writeln!(out, "writes by a non-holder: {}", verdict.offence_count())
}

fn taken(handover: &Handover) -> String {
    if handover.since == Since::Theft { "-".to_owned() } else { millis(handover.taken) }
}

fn words(since: Since) -> &'static str {
    match since {
        Since::Start => "the start",
        Since::Release => "the release",
        Since::RunOut => "the lease's end",
        Since::Deletion => "the deletion",
        Since::ApiBack => "the API's return",
        Since::Theft => "",
    }
}

/// Milliseconds, for reading.
pub fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
