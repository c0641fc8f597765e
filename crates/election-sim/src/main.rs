//! Candidates on one lease, under faults, in simulated time, judged by their gates and their writes alone.
//!
//! The judge excuses what no candidate can know: a process that was never shown who held the lease before people changed it
//! (nor was told by the list of a claim), or was cut off from all renewals since the claim that people have restored; another
//! elector that people have led to take the lease; two live processes with one identity. Reads that lag and edits are kept
//! 8 s apart: a state that is not the newest has to mean one thing at a time.
//!
//! `election-sim [SEEDS] [FIRST]` plays so many histories. With one seed it prints the history if the judge finds something.
//!
//! - `candidate`: a process with its clock, and the shipped machine or `other`, an elector like client-go's.
//! - `server`: the lease, its past, and what the judge knows of each state.
//! - `world`: what happens, in the order of its times. `calls`, `gates`, `faults` and `edits` are parts of it.
//! - `judge`: what must be true at each moment, and at the end.

#![allow(unreachable_pub, reason = "a program has no callers")]

mod calls;
mod candidate;
mod edits;
mod faults;
mod gates;
mod judge;
mod other;
mod server;
mod world;

use std::{env, process::ExitCode};
use world::{Outcome, World};

fn main() -> ExitCode {
    let mut numbers = env::args().skip(1).map(|it| it.parse::<u64>().expect("a number"));
    let (seeds, first) = (numbers.next().unwrap_or(2_000), numbers.next().unwrap_or(1));
    let (mut terms, mut rollouts, mut most, mut bad) = (0, 0, 0, 0_u32);
    for seed in first..first + seeds {
        match play(seed) {
            Ok(outcome) => {
                terms += outcome.terms;
                rollouts += u64::from(outcome.rolled_out);
                most = most.max(outcome.most_calls);
            }
            Err(why) => {
                bad += 1;
                if bad <= 5 {
                    println!("seed {seed}: {why}");
                }
                if seeds == 1 {
                    println!("{}", told(seed, 150).join("\n"));
                }
            }
        }
    }
    println!("{seeds} seeds, {terms} terms, {rollouts} rollouts, at most {most} calls a second, {bad} bad");
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays the history of this seed.
fn play(seed: u64) -> Result<Outcome, String> {
    World::new(seed, false).run()
}

/// Plays it again, and returns its last lines.
fn told(seed: u64, last: usize) -> Vec<String> {
    let mut world = World::new(seed, true);
    let end = world.run().err().unwrap_or_default();
    let mut told = world.told;
    told.extend(world.all.iter().map(|it| format!("{it:?}")));
    told.push(end);
    told.split_off(told.len().saturating_sub(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `make -C crates/election-sim` plays more, and so does `ELECTION_SIM_SEEDS`.
    #[test]
    fn no_two_gates_are_open_at_once() {
        let seeds = env::var("ELECTION_SIM_SEEDS").map_or(300, |it| it.parse().expect("a number"));
        let mut terms = 0;
        for seed in 1..=seeds {
            let outcome = play(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            terms += outcome.terms;
        }
        assert!(terms > 2_000, "only {terms} terms");
    }
}
