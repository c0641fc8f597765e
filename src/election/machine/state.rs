//! A candidate, and the words in which it is told and asked.

use super::{
    calls::{Call, Calls, Pace},
    known::{Known, Lease, Seen},
    stored::Stored,
    terms::{ActiveTerm, Terms},
};
use crate::{
    election::priority::Priority,
    leadership::{Intent, Loss, Moment, Term},
    lease::{Identity, LeaseTiming},
};

/// What this process still does in its term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// The gate admits writes, or admitted writes are under way.
    pub writes: bool,
    /// When the last write that ended without an answer can land no more (rule S4).
    pub settle_at: Moment,
    /// What its program forbids this candidate now.
    pub restraint: Restraint,
    /// Calls of other elections have all places, so this election can make no call yet.
    pub is_crowded: bool,
}

/// What its program forbids a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restraint {
    #[default]
    None,
    /// To ask a holder for the lease that it precedes.
    AsksNoHolder,
    /// To take the lease.
    StaysAway,
}

/// What the gate has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The last term has ended in this way. The gate is also shut before the first term, and while a possible writer is waited
    /// for.
    Shut(Loss),
    Open {
        term: Term,
        deadline: Moment,
    },
    /// It admits no new write. Admitted writes go on until the deadline.
    Closing {
        deadline: Moment,
    },
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Call(Call),
    /// Nothing until this moment, or until something happens.
    Wait(Moment),
    /// [`Intent::Leave`] is carried out: the lease is released or another's, or it is left to expire for this reason.
    Done(Result<(), &'static str>),
}

/// One candidate of an election.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) me: Identity,
    /// The uid of the pod in which this process runs.
    pub(super) pod: Option<String>,
    /// The number that this process drew when it began.
    pub(super) process: u64,
    /// Whether the number is of an election that runs in this very process.
    pub(super) runs_here: fn(u64) -> bool,
    pub(super) priority: Option<Priority>,
    pub(super) timing: LeaseTiming,
    pub(super) intent: Intent,
    pub(super) busy: Busy,
    pub(super) known: Known,
    pub(super) terms: Terms,
    pub(super) calls: Calls,
    pub(super) pace: Pace,
}

// === impl Machine ===

impl Machine {
    /// Makes a candidate. `pod` is the uid of its pod, if it is known. `process` is drawn by chance: no two processes may have
    /// the same number.
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
            known: Known::default(),
            terms: Terms::default(),
            calls: Calls::default(),
            pace: Pace::default(),
        }
    }

    /// Lets the candidate tell other elections of this process from an earlier process.
    #[must_use]
    pub(crate) fn beside(self, runs_here: fn(u64) -> bool) -> Self {
        Self { runs_here, ..self }
    }

    /// The newest version of the lease that this candidate has seen.
    pub const fn newest(&self) -> u64 {
        self.known.newest
    }

    /// The lease, as it was last seen.
    pub(super) fn seen(&self) -> Option<&Seen> {
        if let Lease::Present(seen) = &self.known.lease { Some(seen) } else { None }
    }

    /// From when on this process must not begin a write (rule S1).
    pub(super) fn deadline(&self) -> Moment {
        self.terms.claimed.saturating_add(self.timing.renew_deadline())
    }

    /// A number in 0..1, all equally likely, and another one for each process and moment.
    pub(super) fn chance(&self, now: Moment) -> f64 {
        fastrand::Rng::with_seed(self.process ^ now.as_nanos()).f64()
    }

    /// Whether this process or its predecessor has written this, be it a claim or a release.
    pub(super) fn has_written(&self, stored: &Stored) -> bool {
        let predecessor = self.known.predecessor.map(|predecessor| predecessor.process);
        stored
            .claim()
            .is_some_and(|claim| claim.process == self.process || Some(claim.process) == predecessor)
    }

    /// Whether this is a claim of this process, or of its predecessor.
    pub(super) fn is_mine(&self, stored: &Stored) -> bool {
        stored.record.holder() == Some(self.me.as_str()) && self.has_written(stored)
    }

    /// Whether this is a claim of that term of this very process. Other electors trust the duration in the lease, so it must
    /// not be shorter than this process's own.
    pub(super) fn is_of(&self, stored: &Stored, term: &ActiveTerm) -> bool {
        let lasts = stored.record.duration() >= Some(self.timing.lease_duration());
        let own = stored.claim().is_some_and(|claim| claim.process == self.process);
        let holds = own && stored.record.holder() == Some(self.me.as_str());
        holds && lasts && stored.record.term().is_same(&term.name)
    }

    /// Whether the lease shows this term.
    pub(super) fn shows(&self, term: Option<&Term>) -> bool {
        let shown = self.seen().map(|seen| seen.stored.record.term());
        shown.zip(term).is_some_and(|(shown, term)| shown.is_same(term))
    }

    /// Whether the process stops or stands down. Failures before that order do not count any more, and are no success.
    pub(crate) fn is_ending(&self) -> bool {
        self.intent.is_to_leave()
    }

    /// Whether this candidate may take the lease.
    pub(super) fn acquires(&self) -> bool {
        self.intent == Intent::Contend && !self.stays_away()
    }

    /// Whether its program lets this candidate take no lease.
    pub(super) fn stays_away(&self) -> bool {
        self.busy.restraint == Restraint::StaysAway
    }
}
