//! The script: which fault comes when, to whom, and for how long. All of it follows from the seed; what does not is when
//! exactly the processes and the server get to run.

use clap::ValueEnum;
use fastrand::Rng;
use kube_leader_gate::LeaseTiming;
use serde::Serialize;
use std::{fmt, ops::RangeInclusive, time::Duration};

/// The longest delay of any slow uplink.
const LONGEST_LATENCY: Duration = Duration::from_secs(3);

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
    /// The line holds back what the candidate sends, and delivers it before anybody else can have taken the lease.
    HoldUp,
    /// The line holds back what the server answers, and delivers it later.
    HoldDown,
    /// The line is slow.
    Delay,
    /// An outsider writes itself into the lease, for a short time.
    Steal,
    /// The lease is deleted.
    Delete,
    /// The API server is killed and started again.
    Restart,
    /// The API server is frozen.
    FreezeServer,
    /// Each connection of the holder delays what the holder sends by 0.2 to 3 s, always by less than lease duration less renew
    /// deadline. Meanwhile the holder is stopped (SIGTERM), or its workload is dropped before its writes are answered (SIGINT).
    SlowUplink,
    /// As hold-up, but what was on its way arrives after the lease has run out. No gate can call it back; only if asked for.
    Late,
}

#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// What goes before it.
    pub pause: Duration,
    /// One fault, now and then two at once.
    pub faults: Vec<Fault>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    pub kind: Kind,
    pub target: Target,
    /// How long after the step's beginning.
    pub after: Duration,
    /// How long it lasts; of a theft: how long its lease is. Thefts, deletions and restarts end by themselves.
    pub length: Duration,
    /// Of a slow line, for each chunk. Of a slow uplink, the longest.
    pub delay: Duration,
    /// Of a slow uplink: the workload is dropped, and the process contends again before it is stopped.
    pub drops: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    Holder,
    /// The follower of this rank, in the order of the identities.
    Follower(usize),
    /// Not one candidate: the lease, or the server.
    All,
}

/// What a script is made from.
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
            // Each kind once, in any order, before any comes again.
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
            // Followers have nothing under way.
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
            // The last renewal was a retry period ago at the most.
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

    /// The longest delay of a slow uplink. It is shorter than lease duration less renew deadline: a write that is delayed for
    /// longer may land late, as the guarantees say.
    fn latency(&mut self) -> Duration {
        let margin = self.frame.timing.tolerated_skew();
        let most = margin.mul_f64(0.9).min(LONGEST_LATENCY);
        most.mul_f64(0.2 + 0.8 * self.rng.f64())
    }

    /// A time between these hundredths of the lease.
    fn share(&mut self, percent: RangeInclusive<u32>) -> Duration {
        let millis = self.rng.u32(percent.start() * 10..=percent.end() * 10);
        self.frame.timing.lease_duration() * millis / 1000
    }
}

impl Kind {
    /// All under which nobody but the holder may write.
    pub fn all() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|it| *it != Self::Late).collect()
    }

    /// Whether both can happen at once without one making the other pointless: a disturbed line, and anything else. But for
    /// a theft, which is not waited for: a holder that cannot hear of it does not know. And but for a slow uplink, which
    /// disturbs the line and ends the process; a frozen server would add to its delay, beyond what is promised.
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
