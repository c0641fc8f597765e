//! The live picture: one lane per replica, redrawn in place, 80 columns wide. Needs a terminal that knows a few ANSI
//! sequences.

use crate::{
    acts::ACTS,
    cast::NAMES,
    journal::{Journal, Pages, Sample},
    replica::State,
    stage::Stage,
    workload::Counts,
};
use std::{
    fmt::{self, Write as _},
    io::{self, Write as _},
    time::Duration,
};

const HIDE_CURSOR_AND_CUT_LINES: &str = "\x1b[?25l\x1b[?7l";
const SHOW_CURSOR_AND_WRAP_LINES: &str = "\x1b[?25h\x1b[?7h";
const CLEAR_TO_END_OF_LINE: &str = "\x1b[K";
/// One column of a strip.
const COLUMN: Duration = Duration::from_millis(500);
const COLUMNS: usize = 76;
/// How many of the latest notes are shown.
const NOTES: usize = 6;

// Close to Okabe and Ito's colours, which people with any kind of colour vision can tell apart. Each state has a
// character of its own too.
const LEADS: Ink = Ink { mark: '█', colour: "\x1b[38;5;32m" };
const FOLLOWS: Ink = Ink { mark: '·', colour: "\x1b[38;5;245m" };
const FROZEN_OPEN: Ink = Ink { mark: '▓', colour: "\x1b[38;5;214m" };
const FROZEN: Ink = Ink { mark: '▒', colour: "\x1b[38;5;214m" };
const DOWN: Ink = Ink { mark: ' ', colour: "" };
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

#[derive(Clone, Copy, PartialEq, Eq)]
struct Ink {
    mark: char,
    colour: &'static str,
}

pub struct Live {
    head: [String; 2],
    colours: bool,
    /// How many lines the last frame had.
    drawn: usize,
}

impl Live {
    pub fn new(stage: &Stage) -> Self {
        let timing = stage.timing;
        let head = [
            "kube-leader-gate: three replicas, one Lease, one writer".to_owned(),
            format!(
                "lease {:?}, renew deadline {:?}, retry {:?}; {}",
                timing.lease_duration(),
                timing.renew_deadline(),
                timing.retry_period(),
                stage.place
            ),
        ];
        Self { head, colours: std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()), drawn: 0 }
    }

    /// What draws the next frame over the last one.
    pub fn frame(&mut self, journal: &Journal) -> String {
        let mut body = String::new();
        // Writing into a string does not fail.
        let _ = self.body(&mut body, journal);
        let mut frame = HIDE_CURSOR_AND_CUT_LINES.to_owned();
        if self.drawn > 0 {
            let _ = write!(frame, "\x1b[{}A\r", self.drawn);
        }
        self.drawn = body.lines().count();
        frame + &body.replace('\n', &format!("{CLEAR_TO_END_OF_LINE}\n"))
    }

    fn body(&self, out: &mut String, journal: &Journal) -> fmt::Result {
        let pages = journal.pages();
        let now = pages.samples.last().map(|it| it.at).unwrap_or_default();
        writeln!(
            out,
            " {}{:<68}{} {:>5.1} s",
            self.style(BOLD),
            self.head[0],
            self.style(PLAIN),
            now.as_secs_f64()
        )?;
        writeln!(out, " {}\n", self.head[1])?;
        let number = pages.acts.len().clamp(1, ACTS.len());
        let act = &ACTS[number - 1];
        let (bold, plain) = (self.style(BOLD), self.style(PLAIN));
        writeln!(out, " {bold}Act {number} of {}: {}{plain}", ACTS.len(), act.title)?;
        writeln!(out, " {}\n", act.story)?;
        for (lane, name) in NAMES.iter().enumerate() {
            self.lane(out, &pages, lane, name)?;
        }
        ruler(out, journal, &pages)?;
        self.legend(out)?;
        writeln!(out)?;
        let skipped = pages.notes.len().saturating_sub(NOTES);
        for line in 0..NOTES {
            match pages.notes.get(skipped + line) {
                Some((at, note)) => writeln!(out, " {:>5.1} s  {note}", at.as_secs_f64())?,
                None => writeln!(out)?,
            }
        }
        Ok(())
    }

    fn lane(&self, out: &mut String, pages: &Pages, lane: usize, name: &str) -> fmt::Result {
        let Some(last) = pages.samples.last() else { return writeln!(out, "\n") };
        let (what, gate) = match last.lanes[lane].state {
            State::Down => ("down", "-"),
            State::Follows => ("follows", "closed"),
            State::Leads => ("LEADS", "open"),
            State::Frozen { gate_open: true } => ("FROZEN", "open"),
            State::Frozen { gate_open: false } => ("FROZEN", "closed"),
        };
        let Counts { written, rejected, reads, .. } = pages.rates(pages.samples.len() - 1, lane);
        writeln!(
            out,
            " {}{name}{} {what:<8} gate {gate:<8} {written:>5} writes/s {rejected:>5} rejected/s {reads:>5} reads/s",
            self.style(BOLD),
            self.style(PLAIN),
        )?;
        write!(out, "  ")?;
        let mut last = None;
        for column in columns(pages) {
            let ink =
                column.iter().map(|it| ink(it.lanes[lane].state)).max_by_key(|it| rank(*it)).unwrap_or(DOWN);
            if self.colours && last.replace(ink) != Some(ink) {
                write!(out, "{PLAIN}{}", ink.colour)?;
            }
            out.push(ink.mark);
        }
        writeln!(out, "{}", self.style(PLAIN))
    }

    fn legend(&self, out: &mut String) -> fmt::Result {
        let entries = [
            (LEADS, "gate open"),
            (FOLLOWS, "closed"),
            (FROZEN_OPEN, "frozen, open"),
            (FROZEN, "frozen, closed"),
        ];
        write!(out, " ")?;
        for (ink, meaning) in entries {
            write!(out, " {}{}{} {meaning}  ", self.style(ink.colour), ink.mark, self.style(PLAIN))?;
        }
        writeln!(out, " blank: down")
    }

    fn style(&self, sequence: &'static str) -> &'static str {
        if self.colours { sequence } else { "" }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // If the terminal is gone, no cursor has to be restored.
        let _ = io::stdout().write_all(SHOW_CURSOR_AND_WRAP_LINES.as_bytes());
    }
}

/// Where each act has begun, below the strips.
fn ruler(out: &mut String, journal: &Journal, pages: &Pages) -> fmt::Result {
    write!(out, "  ")?;
    let mut act = 0;
    for column in columns(pages) {
        let end = column.last().map(|it| it.at).unwrap_or_default();
        let begun = pages.acts.iter().filter(|it| journal.time(**it) <= end).count();
        if begun == act {
            out.push(' ');
        } else {
            write!(out, "{begun}")?;
        }
        act = begun;
    }
    writeln!(out)
}

/// The samples of the latest columns, oldest first. Columns stay where they are in time, so that they do not flicker.
fn columns(pages: &Pages) -> impl Iterator<Item = &[Sample]> {
    let column = |at: Duration| at.as_millis() / COLUMN.as_millis();
    let columns: Vec<_> = pages.samples.chunk_by(move |a, b| column(a.at) == column(b.at)).collect();
    let skipped = columns.len().saturating_sub(COLUMNS);
    columns.into_iter().skip(skipped)
}

fn ink(state: State) -> Ink {
    match state {
        State::Down => DOWN,
        State::Follows => FOLLOWS,
        State::Leads => LEADS,
        State::Frozen { gate_open: true } => FROZEN_OPEN,
        State::Frozen { gate_open: false } => FROZEN,
    }
}

/// Of several states in one column, the rarest is shown.
fn rank(ink: Ink) -> usize {
    [FOLLOWS, LEADS, DOWN, FROZEN, FROZEN_OPEN].iter().position(|it| *it == ink).unwrap_or_default()
}
