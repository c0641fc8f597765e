//! The printed report.

use crate::{
    args::Faults,
    journal::Journal,
    report::{Measured, Report},
    roster::Counts,
};
use std::{collections::BTreeMap, fmt::Write, time::Duration};

/// A table by kind of fault, and the totals of the run.
pub fn table(options: &Faults, seed: u64, report: &Report, counts: Counts, journal: &Journal) -> String {
    let mut text = format!(
        "{:<24} {:>6} {:>9} {:>12} {:>8} {:>8} {:>8}\n",
        "fault", "faults", "takeovers", "leaderless", "most", "writes", "overlaps"
    );
    let mut rows = BTreeMap::<&str, Vec<&Measured>>::new();
    for measured in &report.faults {
        rows.entry(&measured.label).or_default().push(measured);
    }
    for (label, faults) in rows {
        let sum = |count: fn(&Measured) -> usize| faults.iter().copied().map(count).sum::<usize>();
        let leaderless: Vec<_> = faults.iter().filter_map(|it| it.leaderless).collect();
        let [_, median, most] = spread(&leaderless).map(seconds);
        let _ = writeln!(
            text,
            "{label:<24} {:>6} {:>9} {median:>12} {most:>8} {:>8} {:>8}",
            faults.len(),
            sum(|it| it.takeovers),
            sum(|it| it.writes + it.overlaps),
            sum(|it| it.overlaps),
        );
    }
    let Report { writes, takeovers, unknown, finished, run_out, not_held, .. } = report;
    let (terms, overlaps) = (report.verdict.terms.len(), report.overlaps());
    let Counts { rejected, cut_off, failed, unanswered, .. } = counts;
    let _ = write!(
        text,
        "leaderless: median and most of each fault's longest time in which no write by the holder took effect\n\
         writes: {writes} in {terms} terms with {takeovers} takeovers; by a candidate that another had replaced: {overlaps}, \
         of unknown outcome {unknown}\n\
         arrived before another candidate's acquisition and took effect after it: {finished}\n\
         by the last holder, after a theft, a deletion or its release: {not_held}; after its lease had run out: {run_out}\n\
         as the candidates count: {rejected} writes rejected, {cut_off} cut off, {failed} failed, \
         {unanswered} dropped unanswered\n\
         timeline: {}\n\
         again: tests/apiserver/assets.sh cargo test --release --test chaos -- {}\n",
        journal.path.display(),
        again(options, seed),
    );
    text
}

/// The options that play the same script.
pub fn again(options: &Faults, seed: u64) -> String {
    let Faults { count, candidates, kinds, holder_only, .. } = options;
    let mut text = format!("faults --faults {count} --seed {seed} --candidates {}", candidates.count);
    let _ = write!(text, " --timing {} --elector {}", candidates.timing, candidates.elector);
    if !kinds.is_empty() {
        let names: Vec<_> = kinds.iter().map(ToString::to_string).collect();
        let _ = write!(text, " --kinds {}", names.join(","));
    }
    if candidates.layers.fence {
        text += " --fence";
    }
    if !candidates.layers.request_deadline {
        text += " --request-deadline off";
    }
    if *holder_only {
        text += " --holder-only";
    }
    text
}

/// Least, median and most. Zero when there are no values.
pub fn spread(times: &[Duration]) -> [Duration; 3] {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |place: usize| times.get(place).copied().unwrap_or_default();
    let last = times.len().saturating_sub(1);
    [at(0), (at(last / 2) + at(last.div_ceil(2))) / 2, at(last)]
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
