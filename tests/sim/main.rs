//! Whole replicas on a simulated network, with simulated time: `make -C tests sim`. One seed gives one run, byte for byte.
//!
//! `author` writes a `plan` from a seed, and `run` plays it: `world` has the machines and moves the time, `faults` plays
//! the faults, and `judge` judges the API server's log of writes. A `machine` is a runtime with a `clock` of its own, and
//! a `replica` runs on it, and takes `orders`. Its workload writes the object of `work`, and its gate may wait for a
//! `cache` of this object. `gates` judges all gates. `layered` wraps its lock; `fence` and `kubelet` are what the layers
//! find in the cluster. `net` carries the messages between its `line` and the `gateway` of the API server, as the `cable`
//! of the machine lets them through; `wall` makes wall clocks wrong, and `messages` counts what the crate logs. `seeds`
//! plays many seeds, and `shrink` makes a failing plan smaller. `replays` has such plans as tests. `soak` plays hours.
//! README.md explains the findings.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod author;
mod cable;
mod cache;
mod clock;
mod faults;
mod fence;
mod gates;
mod gateway;
mod judge;
mod kubelet;
mod layered;
mod line;
mod machine;
mod messages;
mod net;
mod orders;
mod parcel;
mod past;
mod plan;
mod replays;
mod replica;
mod run;
mod seeds;
mod seen;
mod shrink;
mod soak;
mod wall;
mod work;
mod world;

use crate::run::run;

/// What `make test` plays.
const SEEDS: u64 = 200;
/// How many seeds are played twice.
const TWICE: u64 = 12;

/// `SIM_SEEDS` and `SIM_FROM` choose other seeds.
#[test]
fn seeds_bring_no_violation() {
    let (from, count) = (seeds::number("SIM_FROM").unwrap_or(0), seeds::number("SIM_SEEDS").unwrap_or(SEEDS));
    let sum = seeds::play(from..from + count);
    sum.print();
    if let Some((seed, violations)) = &sum.failed {
        seeds::explain(*seed, violations);
    }
    if count >= SEEDS {
        sum.assert_enough();
    }
}

/// `SIM_FROM` chooses other seeds.
#[test]
fn one_seed_gives_one_run() {
    let first = seeds::number("SIM_FROM").unwrap_or(0);
    for seed in first..first + TWICE {
        let plan = author::plan(seed);
        let (one, other) = (run(&plan, true), run(&plan, true));
        let differs = one.log.iter().zip(&other.log).position(|(one, other)| one != other);
        if let Some(place) = differs {
            panic!("seed {seed} differs at {place}:\n{}\n{}", one.log[place], other.log[place]);
        }
        assert_eq!(one.log.len(), other.log.len());
    }
}

/// Prints the whole log of `SIM_SEED`.
#[test]
fn log_of_one_seed() {
    let Some(seed) = seeds::number("SIM_SEED") else { return };
    let plan = author::plan(seed);
    println!("{plan}");
    let outcome = run(&plan, true);
    outcome.log.iter().for_each(|line| println!("{line}"));
    println!("{:#?}", outcome.violations);
}
