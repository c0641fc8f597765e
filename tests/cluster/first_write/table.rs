//! The rounds of one way, as a row of a table.

use crate::round::{Round, between};
use std::{fmt, time::Duration};

pub struct Table {
    name: &'static str,
    rounds: Vec<[Option<Duration>; PARTS]>,
    bursts: Vec<(usize, usize)>,
    /// Requests and bytes.
    lists: Vec<(usize, usize)>,
}

/// release, gain, first write sent, first write answered; all; release to first write sent; the changed object.
const PARTS: usize = 7;

impl Table {
    pub const HEAD: &str = "| works on | until the release | until the next leader | until its first write | until the answer | all | \
        release to first write | until the changed object | writes within 0.1 s, 1 s | lists before the first write | bytes |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

    pub fn new(name: &'static str) -> Self {
        Self { name, rounds: Vec::new(), bursts: Vec::new(), lists: Vec::new() }
    }

    /// Adds a round, and describes it.
    pub fn add(&mut self, round: &Round) -> String {
        let parts = [
            Some(round.after(round.released)),
            Some(between(round.released, round.acquired)),
            Some(between(round.acquired, round.sent)),
            Some(between(round.sent, round.written)),
            Some(round.after(round.written)),
            Some(between(round.released, round.sent)),
            round.needed.map(|at| round.after(at)),
        ];
        self.rounds.push(parts);
        self.bursts.push(round.burst);
        self.lists.push((round.lists.len(), round.bytes));
        let parts: Vec<_> = parts.iter().map(|it| it.map_or("-".to_owned(), millis)).collect();
        let lists = round.lists.len();
        format!(
            "{:<14} {} {:?} {lists} lists, {} bytes",
            self.name,
            parts.join("  "),
            round.burst,
            round.bytes
        )
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
        let median = |counts: &[(usize, usize)], count: fn(&(usize, usize)) -> usize| {
            let mut counts: Vec<_> = counts.iter().map(count).collect();
            counts.sort_unstable();
            counts.get(counts.len() / 2).copied().unwrap_or_default()
        };
        let (bursts, lists) = (&self.bursts, &self.lists);
        write!(f, " {}, {} |", median(bursts, |it| it.0), median(bursts, |it| it.1))?;
        write!(f, " {} | {} |", median(lists, |it| it.0), median(lists, |it| it.1))
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
