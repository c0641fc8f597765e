//! The terms of this process: the one that goes on or the last one, and the one that it gives back.

use crate::{
    leadership::{Loss, Moment, Term},
    lease::LeaseTiming,
};
use std::time::Duration;

/// The terms of this process. At most one goes on. Its gate may still wait for possible writers.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    /// The last one that has begun, and how it has ended, if it has.
    last: Option<(ActiveTerm, Option<Loss>)>,
    /// When the last claim was sent that was carried out. The deadline and the end of the lease count from here (rule S1).
    pub(super) claimed: Moment,
    /// The term that this candidate gives back. Its claim may have begun no term in this process, for example the predecessor's.
    pub(super) closing: Option<Closing>,
}

/// A term of this process.
#[derive(Clone, Debug)]
pub(super) struct ActiveTerm {
    /// With its fencing token.
    pub(super) name: Term,
    /// The next renewal comes a retry period after the last one, less this time. It is a random part of the period after a claim or
    /// a failure, so that elections which began or recovered at one moment do not renew together, or else zero.
    pub(super) early: Duration,
}

/// A term that is given back. The reason belongs to the term, and says how its candidate rests after the release.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    pub(super) term: Term,
    pub(super) reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A candidate that precedes this one has asked for the lease.
    Preceded,
    /// The lease is moved: a person has asked for it, or this process gives way.
    Moved,
    /// The earlier container of this pod that held the lease has ended soon after its gain.
    EndedSoon,
    /// The process stops or stands down. It says itself when it contends again.
    Stopped,
}

// === impl Terms ===

impl Terms {
    pub(super) fn begin(&mut self, name: Term) {
        self.last = Some((ActiveTerm { name, early: Duration::ZERO }, None));
    }

    /// Ends the term that goes on. Does nothing if there is none.
    pub(super) fn end(&mut self, loss: Loss) {
        if let Some((_, ended)) = &mut self.last {
            ended.get_or_insert(loss);
        }
    }

    /// The term that goes on.
    pub(super) fn active(&self) -> Option<&ActiveTerm> {
        self.last.as_ref().filter(|(_, ended)| ended.is_none()).map(|(term, _)| term)
    }

    /// Sets how much earlier the next renewal comes.
    pub(super) fn renew_early(&mut self, early: Duration) {
        if let Some((term, _)) = &mut self.last {
            term.early = early;
        }
    }

    /// The last term that has begun.
    pub(super) fn last(&self) -> Option<&Term> {
        self.last.as_ref().map(|(term, _)| &term.name)
    }

    /// How the last term has ended.
    pub(super) fn lost(&self) -> Loss {
        self.last.as_ref().and_then(|(_, ended)| *ended).unwrap_or(Loss::Abandoned)
    }

    /// Whether this term ends in good order: its gate is closed for good, and it is not renewed.
    pub(super) fn is_closing(&self, term: &Term) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.term.is_same(term))
    }
}

// === impl Reason ===

impl Reason {
    /// How long the candidate takes no lease, from the release on: a retry period, or not at all if the process stopped.
    pub(super) fn rest(self, timing: &LeaseTiming) -> Duration {
        if self == Self::Stopped { Duration::ZERO } else { timing.retry_period() }
    }

    /// How long the candidate does not ask for the lease by its priority, from the release on: a retry period after precedence, or
    /// else a lease duration. After a person has moved the lease, a preferred candidate would undo that at once.
    pub(super) fn silence(self, timing: &LeaseTiming) -> Duration {
        if self == Self::Preceded { timing.retry_period() } else { timing.lease_duration() }
    }
}
