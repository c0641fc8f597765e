//! Plays many seeds, and reports.

use crate::{
    author,
    gateway::PAST,
    plan::Plan,
    run::{Outcome, recovers_within, run},
    seen::Openings,
    shrink::shrink,
};
use kube_leader_gate::LeaseTiming;
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

/// How many kinds of faults there are.
const KINDS: usize = 20;

/// What many runs brought.
#[derive(Debug, Default)]
pub struct Sum {
    pub seeds: u64,
    pub faults: BTreeMap<String, u64>,
    /// Which kinds of faults have hit something.
    pub kinds: BTreeSet<String>,
    pub terms: BTreeMap<String, u64>,
    pub writes: u64,
    pub messages: u64,
    pub length: u64,
    /// Of runs whose machines do not know, and of runs in which some do.
    pub slowest: [u64; 2],
    pub handed_over: [u64; 2],
    /// Runs in which machines know.
    pub knows: u64,
    pub openings: Openings,
    /// The lowest seed that failed, and what it found.
    pub failed: Option<(u64, Vec<String>)>,
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.kinds.extend(outcome.kinds);
        outcome.faults.into_iter().for_each(|(what, count)| *self.faults.entry(what).or_default() += count);
        outcome.terms.into_iter().for_each(|(what, count)| *self.terms.entry(what).or_default() += count);
        self.writes += outcome.writes;
        self.messages += outcome.messages;
        self.length += outcome.length;
        let of = usize::from(outcome.knows);
        self.slowest[of] = self.slowest[of].max(outcome.recovered);
        self.handed_over[of] = self.handed_over[of].max(outcome.handed_over);
        self.knows += u64::from(outcome.knows);
        self.openings.add(outcome.openings);
        if !outcome.violations.is_empty() && self.failed.as_ref().is_none_or(|(first, _)| seed < *first) {
            self.failed = Some((seed, outcome.violations.into_iter().collect()));
        }
    }

    pub fn handovers(&self) -> u64 {
        self.terms.iter().filter(|(what, _)| what.starts_with("handovers")).map(|it| it.1).sum()
    }

    /// Seeds that bring too little prove nothing.
    pub fn assert_enough(&self) {
        let kinds = self.kinds.len();
        assert_eq!(kinds, KINDS, "{:?}", self.kinds);
        assert!(self.handovers() > 2 * self.seeds, "only {} handovers", self.handovers());
        assert!(self.writes > 50 * self.seeds, "only {} writes", self.writes);
        assert!(self.faults.get(PAST).is_some_and(|it| *it > 0), "no {PAST}");
        assert!(self.openings.opened > self.seeds / 2, "{:?}", self.openings);
        assert!(self.openings.behind > self.seeds / 20, "{:?}", self.openings);
        for kind in ["a release", "an expiry", "a deletion"] {
            let count = self.terms.get(&format!("handovers after {kind}"));
            assert!(count.is_some_and(|it| *it > 0), "no handover after {kind}");
        }
    }

    pub fn print(&self) {
        println!("{} seeds, {} s of simulated time", self.seeds, self.length / 1_000);
        let most = recovers_within(LeaseTiming::fast());
        println!("{:>8}  workload writes took effect", self.writes);
        println!(
            "{:>8}  ms at most from the last fault to a write; allowed are {most}, and 5 s more beside a longer lease",
            self.slowest[0]
        );
        println!("{:>8}  ms at most from a release to a write of another candidate", self.handed_over[0]);
        println!("{:>8}  runs in which gates wait for caches", self.knows);
        let Openings { asked, behind, opened } = self.openings;
        println!("{asked:>8}  gates began to wait for a cache");
        println!("{behind:>8}  of these caches were behind");
        println!("{opened:>8}  of these gates opened");
        println!("{:>8}  ms at most from the last fault to a write, in these runs", self.slowest[1]);
        println!(
            "{:>8}  ms at most from a release to a write of another candidate, in these runs",
            self.handed_over[1]
        );
        println!("{:>8}  log messages", self.messages);
        println!("{:>8}  handovers", self.handovers());
        self.terms.iter().for_each(|(what, count)| println!("{count:>8}  {what}"));
        println!("faults that hit something:");
        self.faults.iter().for_each(|(what, count)| println!("{count:>8}  {what}"));
    }
}

/// Plays these seeds on all processors, up to the first that fails.
pub fn play(seeds: Range<u64>) -> Sum {
    let (next, stop, sum) = (AtomicU64::new(seeds.start), AtomicBool::new(false), Mutex::new(Sum::default()));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let outcome = run(&author::plan(seed), false);
            stop.fetch_or(!outcome.violations.is_empty(), Ordering::Relaxed);
            sum.lock().expect("no panic").add(seed, outcome);
        }
    };
    let threads = thread::available_parallelism().map_or(2, usize::from).min(8);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    sum.into_inner().expect("no panic")
}

/// Makes the plan of a failing seed smaller, prints it as a test, and panics.
pub fn explain(seed: u64, violations: &[String]) -> ! {
    let plan = author::plan(seed);
    assert!(number("SIM_SHRINK") != Some(0), "seed {seed}: {}", violations.join("; "));
    let kinds: Vec<_> = violations.iter().map(|it| kind(it).to_owned()).collect();
    let fails = |plan: &Plan| {
        run(plan, false).violations.iter().any(|it| kinds.iter().any(|kind| kind == self::kind(it)))
    };
    let began = Instant::now();
    let small = shrink(&plan, fails);
    let faults = (plan.faults.len(), small.faults.len());
    println!("seed {seed} fails: {violations:#?}");
    println!(
        "made smaller in {:?}, from {} faults to {}; put this into tests/sim/replays.rs:",
        began.elapsed(),
        faults.0,
        faults.1
    );
    println!("{small}");
    panic!("seed {seed}: {}", violations.join("; "));
}

fn kind(violation: &str) -> &str {
    violation.split(':').next().unwrap_or_default()
}

/// The number in an environment variable.
pub fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok().filter(|it| !it.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}
