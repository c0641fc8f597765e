//! A process: its elector, its clock, its faults, and its writes.

use crate::other::Other;
use jiff::Timestamp;
use kube_leader_gate::{
    Identity, LeaseTiming,
    election::Priority,
    internal::{Busy, Gate, Intent, Machine, Next, Restraint, WatchNews},
    leadership::{Loss, Moment, Term},
    lease::{ErrLock, LeaseRecord},
};

#[allow(clippy::large_enum_variant, reason = "a handful of them")]
#[derive(Debug)]
pub enum Elector {
    Ours(Machine),
    Other(Other),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Up,
    Stopping { since: u64 },
    Down,
    Gone,
}

/// What the process around its elector does, as `run_while_leading` and `stop` do it. It says what the process wants in each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// It contends, and no work runs.
    Free,
    /// Leading-only work runs.
    Works,
    /// Work has been told to end, and ends then.
    WindsDown { until: u64 },
    /// Its gate is closed, and admitted writes finish.
    Drains { since: u64 },
    /// It has given the order to release.
    Releases,
}

#[derive(Debug)]
pub struct Candidate {
    pub elector: Elector,
    /// A higher one precedes a lower one. 0 has no key.
    pub rank: i64,
    pub identity: u64,
    pub pod: u64,
    pub process: u64,
    pub timing: LeaseTiming,
    pub life: Life,
    pub run: Run,
    /// Other elections of its process have all places for calls.
    pub crowded_until: u64,
    /// Its program lets it take no lease before.
    pub away_until: u64,
    /// The term that is to be given away.
    pub asked: Option<Term>,
    pub clock: Clock,
    pub watches: bool,
    pub leading_only: bool,
    pub frozen_until: u64,
    pub cut_until: u64,
    pub no_reads_until: u64,
    pub no_writes_until: u64,
    /// The call under way.
    pub call: u64,
    pub poll_at: u64,
    pub gate: Gate,
    /// The latest claim that the server has carried out.
    pub claim: usize,
    /// The claims that it has been shown or told of.
    pub seen: u128,
    /// Its writes under way.
    pub writes: Vec<u64>,
    pub settle_at: Moment,
    pub last_news: u64,
    second: u64,
    in_second: u64,
}

/// A clock of its own, which runs a little faster or slower than the world's.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub offset: u64,
    /// In thousandths.
    pub drift: i64,
    /// How wrong the wall clock is, in milliseconds.
    pub skew: i64,
}

pub fn moment(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

pub fn name(identity: u64) -> String {
    format!("c{identity}")
}

impl Candidate {
    pub fn new(
        rank: i64,
        (identity, pod): (u64, u64),
        process: u64,
        timing: LeaseTiming,
        clock: Clock,
        now: u64,
    ) -> Self {
        Self {
            elector: Elector::machine(identity, pod, process, rank, timing),
            rank,
            identity,
            pod,
            process,
            timing,
            life: Life::Up,
            run: Run::Free,
            crowded_until: 0,
            away_until: 0,
            asked: None,
            clock,
            watches: false,
            leading_only: false,
            frozen_until: 0,
            cut_until: 0,
            no_reads_until: 0,
            no_writes_until: 0,
            call: 0,
            poll_at: now,
            gate: Gate::Shut(Loss::Abandoned),
            claim: 0,
            seen: 0,
            writes: vec![],
            settle_at: Moment::default(),
            last_news: now,
            second: 0,
            in_second: 0,
        }
    }

    /// A new process takes its place.
    pub fn restart(&mut self, (identity, pod): (u64, u64), process: u64, offset: u64, now: u64) {
        (self.identity, self.pod, self.process) = (identity, pod, process);
        match &mut self.elector {
            Elector::Other(other) => *other = Other::new(name(identity), self.timing), // its clock is the host's
            Elector::Ours(_) => {
                self.elector = Elector::machine(identity, pod, process, self.rank, self.timing);
                self.clock.offset = offset;
            }
        }
        (self.life, self.run, self.asked, self.settle_at) = (Life::Up, Run::Free, None, Moment::default());
        (self.frozen_until, self.cut_until, self.away_until, self.call, self.seen) = (0, 0, 0, 0, 0);
        (self.poll_at, self.last_news) = (now, now);
        if self.watches {
            self.hears(WatchNews::Up, now);
        }
    }

    pub fn local(&self, now: u64) -> u64 {
        let drift = i64::try_from(now).expect("a small number") * self.clock.drift / 1_000;
        (self.clock.offset + now).saturating_add_signed(drift)
    }

    pub fn now(&self, now: u64) -> Moment {
        moment(self.local(now))
    }

    /// When its clock shows this.
    pub fn world(&self, local: Moment) -> u64 {
        let local = local.as_nanos().div_ceil(1_000_000);
        let mut now = local.saturating_sub(self.clock.offset) * 1_000
            / 1_000_u64.saturating_add_signed(self.clock.drift);
        while self.local(now) < local {
            now += 1;
        }
        now
    }

    pub fn margin(&self) -> u64 {
        u64::try_from(self.timing.safety_margin().as_millis()).expect("a small number")
    }

    pub fn is_up(&self) -> bool {
        matches!(self.life, Life::Up | Life::Stopping { .. })
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.elector, Elector::Ours(_))
    }

    /// Whether its gate is open, as the task has left it and by its own clock.
    pub fn is_open(&self, now: u64) -> bool {
        let is_open = |gate: &Gate| matches!(gate, Gate::Open { .. });
        self.is_up() && self.admits() && is_open(&self.gate) && is_open(&self.gate_now(now))
    }

    /// Whether the process has not closed its gate by itself.
    pub fn admits(&self) -> bool {
        matches!(self.run, Run::Free | Run::Works | Run::WindsDown { .. })
    }

    /// Whether it works in a term that goes on.
    pub fn works(&self, now: u64) -> bool {
        let works = matches!(self.run, Run::Works | Run::WindsDown { .. });
        let is_over = |gate: &Gate| matches!(gate, Gate::Shut(_));
        self.is_up() && works && !is_over(&self.gate) && !is_over(&self.gate_now(now))
    }

    /// What the process wants in this turn.
    pub fn intent(&self) -> Intent {
        match self.run {
            Run::Free => Intent::Contend,
            Run::Works | Run::WindsDown { .. } | Run::Drains { .. } => Intent::Keep,
            Run::Releases => Intent::Leave,
        }
    }

    /// Tells the machine what it is told at the begin of each turn.
    pub fn take_orders(&mut self) {
        let (intent, asked) = (self.intent(), self.asked.take());
        if let Elector::Ours(machine) = &mut self.elector {
            machine.handle_order(intent);
            if let Some(term) = asked {
                machine.give_way(&term);
            }
        }
    }

    /// The process has ended its term by itself.
    pub fn end_term(&mut self) {
        if let Elector::Ours(machine) = &mut self.elector {
            machine.end_term(Loss::Abandoned);
        }
        self.gate = Gate::Shut(Loss::Abandoned);
    }

    pub fn gate_now(&self, now: u64) -> Gate {
        match &self.elector {
            Elector::Ours(machine) => machine.gate(self.now(now)),
            Elector::Other(other) => other.gate(self.now(now)),
        }
    }

    /// The newest version that it knows. None for another elector.
    pub fn knows(&self) -> Option<u64> {
        if let Elector::Ours(machine) = &self.elector { Some(machine.newest()) } else { None }
    }

    pub fn poll(&mut self, wall: Timestamp, now: u64) -> Next {
        let local = self.now(now);
        let margin = self.timing.safety_margin();
        match &mut self.elector {
            Elector::Ours(machine) => {
                if let Some(seen) = machine.predecessor_seen() {
                    self.settle_at = self.settle_at.max(seen.saturating_add(margin));
                }
                let (writes, is_crowded) = (!self.writes.is_empty(), now < self.crowded_until);
                let restraint = if now < self.away_until { Restraint::StaysAway } else { Restraint::None };
                let busy = Busy { writes, settle_at: self.settle_at, restraint, is_crowded };
                machine.poll(busy, wall, local)
            }
            Elector::Other(other) => other.poll(local, wall),
        }
    }

    pub fn answered(&mut self, answer: Result<Option<LeaseRecord>, ErrLock>, now: u64) {
        let local = self.now(now);
        match &mut self.elector {
            // What it says is for the log.
            Elector::Ours(machine) => drop(machine.handle_answer(answer, local)),
            Elector::Other(other) => other.answered(answer, local),
        }
    }

    pub fn hears(&mut self, news: WatchNews, now: u64) {
        let local = self.now(now);
        if let Elector::Ours(machine) = &mut self.elector {
            machine.handle_watch(news, local);
        }
        self.poll_at = now;
    }

    /// The process is told to end.
    pub fn stop(&mut self, now: u64) {
        let local = self.now(now);
        if let Elector::Other(other) = &mut self.elector {
            other.stops = Some(local);
        }
        self.life = Life::Stopping { since: now };
        self.poll_at = now;
    }

    /// Counts a call, and returns how many there were in this second.
    pub fn calls(&mut self, now: u64) -> u64 {
        if self.second != now / 1_000 {
            (self.second, self.in_second) = (now / 1_000, 0);
        }
        self.in_second += 1;
        self.in_second
    }
}

impl Elector {
    fn machine(identity: u64, pod: u64, process: u64, rank: i64, timing: LeaseTiming) -> Self {
        let identity = Identity::new(name(identity)).expect("a name");
        let precedes = move |holder: &str| holder.parse().unwrap_or(0) < rank;
        let priority = (rank > 0).then(|| Priority::new(rank.to_string(), precedes).expect("a key"));
        Self::Ours(Machine::new(identity, Some(format!("pod-{pod}")), process, priority, timing))
    }
}
