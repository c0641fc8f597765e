//! What the machine knows, and the words in which it is told and asked.

use super::{formers::Formers, stored::Stored};
use crate::{
    election::{hooks::LeaseCall, priority::Priority, spread::Spread},
    leadership::{Intent, Loss, Moment, Term},
    lease::{Identity, LeaseRecord, LeaseTiming, LeaseUpdate},
};
use jiff::Timestamp;
use std::time::Duration;

/// What this process still does in its term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// The gate admits writes, or admitted ones are under way.
    pub writes: bool,
    /// When the last write that ended without an answer can land no more (rule S4).
    pub settle_at: Moment,
    /// Calls of other elections have all places, so this one can make no call yet.
    pub is_crowded: bool,
}

/// What the gate has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The last term has ended in this way. It is also shut before the first term, and while a former writer is waited for.
    Shut(Loss),
    Open {
        term: Term,
        deadline: Moment,
    },
    /// It admits no new write. Admitted ones go on until the deadline.
    Closing {
        deadline: Moment,
    },
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Call(Call),
    /// Nothing until this moment or until something happens.
    Wait(Moment),
    /// [`Intent::Leave`] is carried out: the lease is released or another's, or it is left to expire for this reason.
    Done(Result<(), &'static str>),
}

/// A lease call, which may take a call timeout (rule S9). A write swaps `seen`, or creates the lease if there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub what: LeaseCall,
    pub seen: Option<LeaseRecord>,
    /// None for a read.
    pub update: Option<LeaseUpdate>,
}

/// One candidate of an election.
#[derive(Clone, Debug)]
pub struct Machine {
    // What does not change.
    pub(super) me: Identity,
    /// The uid of the pod in which this process runs.
    pub(super) pod: Option<String>,
    /// The number that this process drew when it began.
    pub(super) process: u64,
    /// Whether the number is of an election that runs in this very process.
    pub(super) runs_here: fn(u64) -> bool,
    pub(super) priority: Option<Priority>,
    pub(super) timing: LeaseTiming,
    // What the rest of the process says.
    pub(super) intent: Intent,
    pub(super) busy: Busy,
    // What is known of the lease.
    pub(super) lease: Lease,
    /// The lease was held by an earlier container of this process's pod when this process began.
    pub(super) predecessor: Option<Predecessor>,
    pub(super) formers: Formers,
    /// The latest time that this candidate has seen in the lease. It writes a later one each time.
    pub(super) stamp: Timestamp,
    /// News of the watch with a smaller version are of a server that lags, and are dropped. A read is believed: after a
    /// restored backup this goes back.
    pub(super) newest: u64,
    /// The largest version of all.
    pub(super) highest: u64,
    pub(super) staleness: Staleness,
    /// When the lease was last looked at.
    pub(super) looked: Moment,
    /// A watch has shown the lease, so it is read only if no news come.
    pub(super) watches: bool,
    // What this candidate does.
    pub(super) term: Option<ActiveTerm>,
    /// When the last claim was sent that was answered. Deadline and end of the lease count from here (rule S1).
    pub(super) claimed: Moment,
    /// The last term that has begun.
    pub(super) led: Option<Term>,
    /// How it ended.
    pub(super) lost: Loss,
    /// The term that this candidate gives back, also if its claim was carried out and has begun none here.
    pub(super) closing: Option<Closing>,
    pub(super) flight: Option<Flight>,
    /// An acquisition without an answer: the version that it swaps (empty if it creates the lease), and until when it may land.
    pub(super) may_land: Option<(String, Moment)>,
    /// The version that the last write was to swap. A claim of this process that replaces another version is a copy of one.
    pub(super) wrote_over: String,
    // When it may do it.
    /// When the last acquisition was sent that was carried out.
    pub(super) acquired: Moment,
    /// It takes no lease before. News of others end this rest.
    pub(super) rest_until: Moment,
    /// It calls nothing before, since calls have failed. News of others end this pause.
    pub(super) pause_until: Moment,
    /// It calls nothing before, since the API server has asked it to wait. No news end this.
    pub(super) asked_until: Moment,
    pub(super) failures: u32,
    /// When it may ask the holder the next time.
    pub(super) ask_from: Moment,
    pub(super) spread: Spread,
    /// The server has stored something else than this candidate wrote.
    pub(super) altered: Option<&'static str>,
}

/// How far to trust what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Staleness {
    Fresh,
    /// A watch has begun, and shows nothing of what came before it. A holder reads once, unless its renewal is due, which tells
    /// as much.
    Unsure,
    /// A write met another version: read before the next write.
    Stale,
}

#[allow(clippy::large_enum_variant, reason = "a candidate has one lease")]
#[derive(Clone, Debug)]
pub(super) enum Lease {
    Unknown,
    /// There is none, since then. It is not made anew while a former writer may write.
    Absent(Moment),
    Present(Seen),
}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) stored: Stored,
    /// When this process first saw what the lease says. Its expiry counts from here, on this process's clock (rule S6).
    pub(super) since: Moment,
    /// The longest duration that this holder has recorded in this term. An edit that shortens it ends nothing early.
    pub(super) longest: Duration,
    /// No other process has to be waited for: this one wrote it, or its predecessor did, or a person emptied it.
    pub(super) own: bool,
    /// It was written while this process was looking on, so its writer has lived meanwhile.
    pub(super) is_news: bool,
}

/// An earlier container of this process's pod. The kubelet has ended it before this one began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predecessor {
    /// Its number.
    pub(super) process: u64,
    /// When this process first saw its claim. Its writes have ended by then, without an answer.
    pub(super) seen: Moment,
}

/// A term that is given back. The reason belongs to the term: it says how its candidate rests after the release.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    pub(super) term: Term,
    pub(super) reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A candidate that precedes this one has asked.
    Preceded,
    /// The lease is moved: a person has asked, or this process gives way.
    Moved,
    /// The container of this pod that held it has ended soon after its gain.
    EndedSoon,
    /// The process stops or stands down, and says itself when it contends again.
    Stopped,
}

/// A term of this process.
#[derive(Clone, Debug)]
pub(super) struct ActiveTerm {
    /// With its fencing token.
    pub(super) name: Term,
    /// How early the next renewal comes: by chance after a claim or a failure, so that elections which began or recovered
    /// at one moment do not renew together.
    pub(super) early: Duration,
}

/// The one call under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) call: Call,
    pub(super) sent: Moment,
    /// The newest version when it was sent.
    pub(super) knew: u64,
    /// No watch has begun since it was sent. If one has, the answer may be older than what that watch has missed.
    pub(super) settles: bool,
}

// === impl Machine ===

impl Machine {
    /// Makes a candidate. `pod` is the uid of its pod, if it is known. `process` is drawn by chance: no two processes may have
    /// the same.
    pub fn new(
        identity: Identity,
        pod: Option<String>,
        process: u64,
        priority: Option<Priority>,
        timing: LeaseTiming,
    ) -> Self {
        Self {
            me: identity,
            pod,
            process,
            runs_here: |_| false,
            priority,
            timing,
            intent: Intent::Contend,
            busy: Busy::default(),
            lease: Lease::Unknown,
            predecessor: None,
            formers: Formers::default(),
            stamp: Timestamp::MIN,
            newest: 0,
            highest: 0,
            staleness: Staleness::Fresh,
            looked: Moment::default(),
            watches: false,
            term: None,
            claimed: Moment::default(),
            led: None,
            lost: Loss::Abandoned,
            closing: None,
            flight: None,
            may_land: None,
            wrote_over: String::new(),
            acquired: Moment::default(),
            rest_until: Moment::default(),
            pause_until: Moment::default(),
            asked_until: Moment::default(),
            failures: 0,
            ask_from: Moment::default(),
            spread: Spread::new(timing.pause()),
            altered: None,
        }
    }

    /// Lets it tell other elections of this process from an earlier process.
    #[must_use]
    pub(crate) fn beside(self, runs_here: fn(u64) -> bool) -> Self {
        Self { runs_here, ..self }
    }

    /// When this process must not begin a write any more (rule S1).
    pub(super) fn deadline(&self) -> Moment {
        self.claimed.saturating_add(self.timing.renew_deadline())
    }

    /// Even in 0..1, and another one for each process and moment.
    pub(super) fn chance(&self, now: Moment) -> f64 {
        fastrand::Rng::with_seed(self.process ^ now.as_nanos()).f64()
    }

    /// The newest version of the lease that this candidate has seen.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// The lease, as last seen.
    pub(super) fn seen(&self) -> Option<&Seen> {
        if let Lease::Present(seen) = &self.lease { Some(seen) } else { None }
    }

    /// Whether this process has written it last, a claim or a release, or its predecessor.
    pub(super) fn has_written(&self, stored: &Stored) -> bool {
        let predecessor = self.predecessor.map(|it| it.process);
        stored.claim().is_some_and(|it| it.process == self.process || Some(it.process) == predecessor)
    }

    /// Whether the lease holds a claim of this process, or of its predecessor.
    pub(super) fn is_mine(&self, stored: &Stored) -> bool {
        stored.record.holder() == Some(self.me.as_str()) && self.has_written(stored)
    }

    /// Whether this is a claim of that term, and of this very process. Other electors trust the duration in the lease, so it must
    /// not be shorter.
    pub(super) fn is_of(&self, stored: &Stored, term: &ActiveTerm) -> bool {
        let lasts = stored.record.duration() >= Some(self.timing.lease_duration());
        let own = stored.claim().is_some_and(|it| it.process == self.process);
        let holds = own && stored.record.holder() == Some(self.me.as_str());
        holds && lasts && stored.record.term().is_same(&term.name)
    }
}

impl Reason {
    /// How long the candidate leaves the lease to others.
    pub(super) fn rest(self, timing: &LeaseTiming) -> Duration {
        if self == Self::Stopped { Duration::ZERO } else { timing.retry_period() }
    }
}

impl Seen {
    /// Until when its holder may count on it.
    pub(super) fn until(&self) -> Moment {
        self.since.saturating_add(self.longest)
    }
}
