//! Line by line: acts, what happens, and now and then how each replica does.

use crate::{acts::ACTS, cast::NAMES, journal::Journal, replica::State, stage::Stage};
use std::{fmt::Write, time::Duration};

/// The time between two reports of each replica's state.
const STATUS: Duration = Duration::from_secs(2);

pub struct Lines {
    head: Option<String>,
    acts: usize,
    notes: usize,
    status: Duration,
}

impl Lines {
    pub fn new(stage: &Stage) -> Self {
        let head = format!(
            "kube-leader-gate: three replicas, one Lease, one writer; {}\nlease, renew deadline and retry period: {} s\n",
            stage.place, stage.timing
        );
        Self { head: Some(head), acts: 0, notes: 0, status: STATUS }
    }

    pub fn news(&mut self, journal: &Journal) -> String {
        let mut out = self.head.take().unwrap_or_default();
        let pages = journal.pages();
        // Writing into a string does not fail.
        let _ = (|| {
            let untold = pages.acts.iter().zip(&ACTS).enumerate().skip(self.acts);
            for (number, (began, act)) in untold {
                // Notes of the previous act are printed before the next act begins.
                let began = journal.time(*began);
                let earlier = pages.notes.iter().skip(self.notes).take_while(|(at, _)| *at < began);
                for (at, note) in earlier {
                    self.notes += 1;
                    writeln!(out, "{:>6.2}s  {note}", at.as_secs_f64())?;
                }
                writeln!(out, "\nAct {} of {}, {}. {}", number + 1, ACTS.len(), act.title, act.story)?;
                self.acts = number + 1;
            }
            for (at, note) in pages.notes.iter().skip(self.notes) {
                self.notes += 1;
                writeln!(out, "{:>6.2}s  {note}", at.as_secs_f64())?;
            }
            let Some(last) = pages.samples.last().filter(|it| it.at >= self.status) else { return Ok(()) };
            self.status += STATUS;
            write!(out, "{:>6.2}s ", last.at.as_secs_f64())?;
            for (lane, name) in NAMES.iter().enumerate() {
                let rates = pages.rates(pages.samples.len() - 1, lane);
                let what = match last.lanes[lane].state {
                    State::Down => "is down".to_owned(),
                    State::Frozen { gate_open } => {
                        format!("frozen, gate {}", if gate_open { "open" } else { "closed" })
                    }
                    State::Leads => format!("LEADS, {} writes/s", rates.written),
                    State::Follows => format!("{} rejected/s", rates.rejected),
                };
                write!(out, " | {name}: {what:<19}")?;
            }
            writeln!(out)
        })();
        out
    }
}
