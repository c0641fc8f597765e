//! What happens, in the order of its times.

use crate::{
    candidate::{Candidate, Clock, name},
    other::Other,
    server::{Fact, Server},
};
use fastrand::Rng;
use kube_leader_gate::{
    LeaseTiming,
    internal::{Call, WatchNews},
    lease::{ErrLock, LeaseEvent, LeaseRecord},
};
use serde_json::Value;
use std::{collections::HashMap, time::Duration};

/// No fault begins after this.
pub const FAULTS_END: u64 = 60_000;
/// From here on, calls are fast and none is lost.
pub const CALM: u64 = FAULTS_END + 12_000;
/// From here on the highest rank leads, and the leader is stopped.
pub const ROLLOUT: u64 = CALM + 10_000;
/// Of claims a set of bits has room for no more.
const MOST_CLAIMS: usize = 120;

#[allow(missing_debug_implementations, reason = "no code prints it")]
pub struct World {
    pub now: u64,
    pub rng: Rng,
    pub server: Server,
    pub events: Vec<(u64, Event)>,
    pub all: Vec<Candidate>,
    pub ids: u64,
    processes: u64,
    /// Writes that may still take effect.
    pub landing: Vec<Landing>,
    pub claims: Vec<Claimed>,
    /// Claims whose lease was changed by hand.
    pub edited: u128,
    /// And overtaken by a process that had never seen their holder: nothing is promised.
    pub unseen: u128,
    /// Pods with two live processes, and until when.
    pub twins: HashMap<u64, u64>,
    pub lag_until: u64,
    pub edited_at: u64,
    pub alter_until: u64,
    pub strips: bool,
    pub rollout: Rollout,
    pub opened: u64,
    pub most: u64,
    pub best_led: u64,
    pub led: u64,
    pub told: Vec<String>,
    /// What a candidate has done and must not.
    pub broken: Option<String>,
    verbose: bool,
}

/// What a history has brought.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub terms: u64,
    /// A holder was stopped at the end, and another one followed.
    pub rolled_out: bool,
    /// The most calls of one process in a second.
    pub most_calls: u64,
}

/// Who has made a claim.
#[derive(Clone, Copy, Debug)]
pub struct Claimed {
    pub identity: u64,
    /// It is another elector.
    pub other: bool,
}

/// A write that lands at this time.
#[derive(Debug)]
pub struct Landing {
    pub pod: u64,
    pub claim: usize,
    pub at: u64,
}

/// The stop at the end.
#[derive(Debug, Default)]
pub struct Rollout {
    pub tried: bool,
    pub of: Option<usize>,
    pub released: bool,
    pub handed_over: Option<u64>,
}

#[derive(Debug)]
pub enum Event {
    Request { p: usize, process: u64, call: Call, id: u64, answer_after: Option<u64>, told: u128 },
    Answer { p: usize, process: u64, id: u64, answer: Result<Option<LeaseRecord>, ErrLock> },
    News { p: usize, process: u64, event: LeaseEvent },
    Answered { p: usize, process: u64, write: u64, lost: bool },
    Restart { p: usize, same: bool },
    Stop { p: usize },
    End { p: usize },
    Wake { p: usize },
    Watch { p: usize },
}

impl World {
    pub fn new(seed: u64, verbose: bool) -> Self {
        let mut world = Self {
            now: 1_000,
            rng: Rng::with_seed(seed),
            server: Server::new(),
            events: vec![],
            all: vec![],
            ids: 0,
            processes: 0,
            landing: vec![],
            claims: vec![],
            edited: 0,
            unseen: 0,
            twins: HashMap::new(),
            lag_until: 0,
            edited_at: 0,
            alter_until: 0,
            strips: false,
            rollout: Rollout::default(),
            opened: 0,
            most: 0,
            best_led: 0,
            led: 0,
            told: vec![],
            broken: None,
            verbose,
        };
        let (ranked, mixed) = (world.one_in(3), world.one_in(3));
        for i in 0..2 + world.rng.u64(..3) {
            let other = mixed && i == 0;
            let rank = if ranked && !other { world.rng.i64(0..3) } else { 0 };
            let timing = if world.one_in(6) { timing(4_000, 2_500, 600) } else { timing(3_000, 2_000, 500) };
            world.add((i + 1, i + 1), rank, timing, other);
        }
        world
    }

    pub fn add(&mut self, (identity, pod): (u64, u64), rank: i64, timing: LeaseTiming, other: bool) {
        let process = self.next_process();
        let (offset, drift, skew) =
            (self.rng.u64(..100_000), self.rng.i64(-5..6), self.rng.i64(-4_000..4_000));
        let clock = Clock { offset, drift, skew };
        let mut it = Candidate::new(rank, (identity, pod), process, timing, clock, self.now);
        it.watches = !other && !self.one_in(4);
        it.leading_only = !other && self.one_in(3);
        if other {
            it.elector = crate::candidate::Elector::Other(Other::new(name(identity), timing));
        }
        if it.watches {
            it.hears(WatchNews::Up, self.now);
        }
        self.all.push(it);
    }

    pub fn next_process(&mut self) -> u64 {
        self.processes += 1;
        self.processes * 7919
    }

    pub fn processes(&self) -> u64 {
        self.processes
    }

    pub fn say(&mut self, text: impl FnOnce(&Self) -> String) {
        if self.verbose {
            let line = format!("{:>7} {}", self.now, text(self));
            self.told.push(line);
        }
    }

    pub fn at(&mut self, after: u64, event: Event) {
        self.events.push((self.now + after, event));
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.rng.u64(..n) == 0
    }

    pub fn is_calm(&self) -> bool {
        self.now > CALM
    }

    pub fn is_lost(&mut self, n: u64) -> bool {
        !self.is_calm() && self.one_in(n)
    }

    /// How long a message takes.
    pub fn delay(&mut self) -> u64 {
        match self.rng.u64(..60) {
            0 if !self.is_calm() => self.rng.u64(..2_500),
            1..6 if !self.is_calm() => self.rng.u64(..200),
            _ => 1 + self.rng.u64(..5),
        }
    }

    /// Stores this state, and tells those that watch.
    pub fn put(&mut self, object: Option<Value>, fact: Fact) -> Option<LeaseRecord> {
        let last = self.server.lease.clone();
        let stored = self.server.put(object, fact);
        let version = self.server.version;
        let event = match (&stored, last) {
            (Some(record), _) => LeaseEvent::Seen(record.clone()),
            (None, Some(last)) => LeaseEvent::Deleted(crate::server::at_version(last.into_json(), version)),
            (None, None) => return None,
        };
        for p in 0..self.all.len() {
            if !self.all[p].watches || !self.all[p].is_up() {
                continue;
            }
            // A slow reader misses states, but not the newest one.
            if stored.is_some() && self.one_in(6) {
                self.events.retain(|(_, it)| !matches!(it, Event::News { p: q, .. } if *q == p));
            }
            self.shows(p, event.clone());
        }
        stored
    }

    /// The watch of `p` shows this, a moment later.
    pub fn shows(&mut self, p: usize, event: LeaseEvent) {
        let cut = self.all[p].cut_until.saturating_sub(self.now);
        let at = (self.now + self.delay().max(cut)).max(self.all[p].last_news);
        self.all[p].last_news = at;
        let process = self.all[p].process;
        self.events.push((at, Event::News { p, process, event }));
    }

    pub fn stop(&mut self, p: usize) {
        self.say(|_| format!("{} stops", p + 1));
        self.all[p].stop(self.now);
    }

    /// Plays it to its end.
    ///
    /// # Errors
    /// What the judge has found.
    pub fn run(&mut self) -> Result<Outcome, String> {
        let (mut next_fault, mut next_write, mut judged) = (3_000, 0, false);
        while self.now < ROLLOUT + 2_000 {
            let event = self.events.iter().map(|it| it.0).min().unwrap_or(u64::MAX);
            let up = self.all.iter().filter(|it| it.is_up());
            let poll = up.map(|it| it.poll_at.max(it.frozen_until)).min().unwrap_or(u64::MAX);
            let fault = if self.now < FAULTS_END { next_fault } else { u64::MAX };
            self.now = event.min(poll).min(fault).min(next_write).max(self.now);
            while let Some(event) = self.next_event() {
                self.happen(event);
                self.judge()?;
            }
            for p in 0..self.all.len() {
                let it = &self.all[p];
                if it.is_up() && it.poll_at.max(it.frozen_until) <= self.now {
                    self.poll(p);
                    self.judge()?;
                }
            }
            if self.now >= next_fault && self.now < FAULTS_END {
                self.fault();
                next_fault = self.now + self.rng.u64(..3_000);
            }
            if self.now >= next_write {
                (0..self.all.len()).for_each(|p| self.begin_write(p));
                let now = self.now;
                self.landing.retain(|it| it.at > now);
                next_write = now + 1 + self.rng.u64(..30);
            }
            if self.claims.len() > MOST_CLAIMS {
                return Err(format!("{MOST_CLAIMS} terms"));
            }
            if self.now >= ROLLOUT && !judged {
                judged = true;
                self.judge_the_calm()?;
            }
            if self.now >= ROLLOUT + 300 && !self.rollout.tried {
                self.roll_out();
            }
        }
        self.judge_the_end()?;
        Ok(Outcome { terms: self.opened, rolled_out: self.rollout.of.is_some(), most_calls: self.most })
    }

    fn next_event(&mut self) -> Option<Event> {
        let due = (0..self.events.len()).filter(|&i| self.events[i].0 <= self.now);
        let first = due.min_by_key(|&i| self.events[i].0)?;
        Some(self.events.remove(first).1)
    }
}

fn timing(lease: u64, deadline: u64, retry: u64) -> LeaseTiming {
    let [lease, deadline, retry] = [lease, deadline, retry].map(Duration::from_millis);
    LeaseTiming::new(lease, deadline, retry).expect("a timing")
}
