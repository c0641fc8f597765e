//! The script: which fault comes when, to which candidate, and for how long. All of it follows from the seed. Only
//! the scheduling of the processes and the server does not.

use clap::ValueEnum;
use fastrand::Rng;
use kube_leader_gate::LeaseTiming;
use serde::Serialize;
use std::{fmt, ops::RangeInclusive, time::Duration};

/// The longest delay of any slow uplink.
const LONGEST_LATENCY: Duration = Duration::from_secs(3);
/// How much a busy machine may add to that delay before a write takes effect late.
const SLACK: Duration = Duration::from_millis(500);

/// What happens to a candidate, its line, the lease or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// SIGKILL, and a new process later.
    Kill,
    /// SIGSTOP, SIGCONT later.
    Freeze,
    /// SIGTERM, and a new process later.
    Stop,
    /// The line resets every connection.
    Cut,
    /// The line is silent, and what was sent is lost.
    Blackhole,
    /// The line holds back what the candidate sends, and delivers it before another candidate can have taken the
    /// lease.
    HoldUp,
    /// The line holds back the server's answers, and delivers them later.
    HoldDown,
    /// The line is slow.
    Delay,
    /// An outsider takes the lease for a short time.
    Steal,
    /// The lease is deleted.
    Delete,
    /// The API server is killed and started again.
    Restart,
    /// The API server is frozen.
    FreezeServer,
    /// Each connection of the holder delays what the holder sends by 0.2 to 3 s, always by less than the lease
    /// duration minus the renew deadline. Meanwhile the holder is stopped (SIGTERM), or its workload is dropped
    /// before its writes are answered (SIGINT).
    SlowUplink,
    /// Like hold-up, but the held bytes arrive after the lease has expired. No gate can call them back, so this fault
    /// is played only on request.
    Late,
}

#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The pause before it.
    pub pause: Duration,
    /// One fault, sometimes two at once.
    pub faults: Vec<Fault>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    pub kind: Kind,
    pub target: Target,
    /// The time since the beginning of the step.
    pub after: Duration,
    /// How long it lasts. For a theft: how long its lease is. Thefts, deletions and restarts end by themselves.
    pub length: Duration,
    /// For a slow line, the delay of each chunk. For a slow uplink, the longest delay.
    pub delay: Duration,
    /// For a slow uplink: whether the workload is dropped, and the process contends again before it is stopped.
    pub drops: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    Holder,
    /// The follower of this rank, in the order of the identities.
    Follower(usize),
    /// Not one candidate, but the lease or the server.
    All,
}

/// The input of a script.
#[derive(Debug)]
pub struct Frame<'a> {
    pub seed: u64,
    pub steps: usize,
    pub kinds: &'a [Kind],
    pub candidates: usize,
    pub timing: LeaseTiming,
    pub holder_only: bool,
}

pub fn plan(frame: &Frame<'_>) -> Vec<Step> {
    let mut author = Author { rng: Rng::with_seed(frame.seed), frame };
    let mut bag = Vec::new();
    let mut steps = Vec::with_capacity(frame.steps);
    while steps.len() < frame.steps {
        if bag.is_empty() {
            // Each kind once, in any order, before any kind comes again.
            bag = frame.kinds.to_vec();
            author.rng.shuffle(&mut bag);
        }
        let Some(kind) = bag.pop() else { break };
        steps.push(author.step(kind));
    }
    steps
}

struct Author<'a> {
    rng: Rng,
    frame: &'a Frame<'a>,
}

impl Author<'_> {
    fn step(&mut self, kind: Kind) -> Step {
        let pause = self.share(10..=40);
        let first = self.fault(kind);
        let mut faults = vec![first];
        let partners: Vec<Kind> = self.frame.kinds.iter().copied().filter(|it| kind.goes_with(*it)).collect();
        if !self.frame.holder_only && self.rng.u8(..8) == 0 && !partners.is_empty() {
            let partner = partners[self.rng.usize(..partners.len())];
            let mut second = self.fault(partner);
            second.after = self.share(0..=60);
            faults.push(second);
        }
        Step { pause, faults }
    }

    fn fault(&mut self, kind: Kind) -> Fault {
        let spared = self.frame.holder_only || self.rng.u8(..5) > 0;
        let rank = self.rng.usize(..self.frame.candidates - 1);
        let target = match kind {
            Kind::Steal | Kind::Delete | Kind::Restart | Kind::FreezeServer => Target::All,
            // Followers have no open writes.
            Kind::SlowUplink => Target::Holder,
            _ if spared => Target::Holder,
            _ => Target::Follower(rank),
        };
        let timing = self.frame.timing;
        let lease = timing.lease_duration();
        let length = match kind {
            // With a lease of 6 s: 5 to 11 s.
            Kind::Freeze => self.share(83..=183),
            Kind::Kill => self.share(10..=150),
            Kind::Stop => self.share(0..=50),
            Kind::Steal => Duration::from_secs(self.rng.u64(1..=(lease.as_secs() / 2).max(1))),
            Kind::Delete | Kind::Restart => Duration::ZERO,
            // The last renewal was at most one retry period ago.
            Kind::HoldUp => self.share(25..=90).mul_f64(1.0 - timing.retry_period().div_duration_f64(lease)),
            Kind::Late => self.share(105..=150),
            Kind::SlowUplink => self.share(2..=40),
            _ => self.share(25..=150),
        };
        let delay = match kind {
            Kind::SlowUplink => self.latency(),
            _ => Duration::from_millis(self.rng.u64(20..=400)),
        };
        let drops = kind == Kind::SlowUplink && self.rng.u8(..4) > 0;
        Fault { kind, target, after: Duration::ZERO, length, delay, drops }
    }

    /// The longest delay of a slow uplink. It is shorter than the lease duration minus the renew deadline: a write
    /// with a longer delay may take effect late, as the guarantees say.
    fn latency(&mut self) -> Duration {
        let margin = self.frame.timing.safety_margin();
        let most = margin.mul_f64(0.9).min(margin.saturating_sub(SLACK)).min(LONGEST_LATENCY);
        most.mul_f64(0.2 + 0.8 * self.rng.f64())
    }

    /// A time between these hundredths of the lease duration.
    fn share(&mut self, percent: RangeInclusive<u32>) -> Duration {
        let millis = self.rng.u32(percent.start() * 10..=percent.end() * 10);
        self.frame.timing.lease_duration() * millis / 1000
    }
}

impl Kind {
    /// All faults under which only the holder may write.
    pub fn all() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|it| *it != Self::Late).collect()
    }

    /// Those of them that end no process.
    pub fn enduring() -> Vec<Self> {
        let ends = |it: &Self| matches!(it, Self::Kill | Self::Stop | Self::SlowUplink);
        Self::all().into_iter().filter(|it| !ends(it)).collect()
    }

    /// Whether both faults can happen at once without one making the other pointless: a disturbed line, and any
    /// other. A theft is excluded: it is not waited for, and a holder that is disconnected does not learn of it. A
    /// slow uplink is excluded too: it disturbs the line and ends the process, and a frozen server would add to its
    /// delay beyond the guarantee.
    fn goes_with(self, other: Self) -> bool {
        let on_line = |it| {
            use Kind::{Blackhole, Cut, Delay, HoldDown, HoldUp, Late};
            matches!(it, Cut | Blackhole | HoldUp | HoldDown | Delay | Late)
        };
        let alone = |it| matches!(it, Self::Steal | Self::SlowUplink);
        !alone(self) && !alone(other) && on_line(self) != on_line(other)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.pad(name.as_ref().map_or("", |it| it.get_name()))
    }
}
