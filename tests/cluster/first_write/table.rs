//! The rounds of one way, as a row of a table.

use crate::round::{Round, between};
use std::{fmt, time::Duration};

pub struct Table {
    name: &'static str,
    rounds: Vec<[Option<Duration>; PARTS]>,
    bursts: Vec<(usize, usize)>,
}

/// release, gain, first write sent, first write answered; all; the changed object.
const PARTS: usize = 6;

impl Table {
    pub const HEAD: &str = "| works on | until the release | until the next leader | until its first write | until the answer | all | \
        until the changed object | writes within 0.1 s, 1 s |\n| --- | --- | --- | --- | --- | --- | --- | --- |";

    pub fn new(name: &'static str) -> Self {
        Self { name, rounds: Vec::new(), bursts: Vec::new() }
    }

    /// Adds a round, and describes it.
    pub fn add(&mut self, round: &Round) -> String {
        let parts = [
            Some(round.after(round.released)),
            Some(between(round.released, round.acquired)),
            Some(between(round.acquired, round.sent)),
            Some(between(round.sent, round.written)),
            Some(round.after(round.written)),
            round.needed.map(|at| round.after(at)),
        ];
        self.rounds.push(parts);
        self.bursts.push(round.burst);
        let parts: Vec<_> = parts.iter().map(|it| it.map_or("-".to_owned(), millis)).collect();
        format!("{:<14} {} {:?}", self.name, parts.join("  "), round.burst)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} |", self.name)?;
        for part in 0..PARTS {
            let mut times: Vec<_> = self.rounds.iter().filter_map(|round| round[part]).collect();
            times.sort_unstable();
            match (times.get(times.len() / 2), times.last()) {
                (Some(median), Some(most)) => write!(f, " {} / {} |", millis(*median), millis(*most))?,
                _ => write!(f, " - |")?,
            }
        }
        let median = |count: fn(&(usize, usize)) -> usize| {
            let mut counts: Vec<_> = self.bursts.iter().map(count).collect();
            counts.sort_unstable();
            counts.get(counts.len() / 2).copied().unwrap_or_default()
        };
        write!(f, " {}, {} |", median(|it| it.0), median(|it| it.1))
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
