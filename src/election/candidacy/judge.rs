//! What the lease calls for: whose it is, and from when on it may be taken.

use super::{Candidacy, Known};
use crate::{leadership::Moment, lease::LeaseRecord};

/// What the lease calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Decision {
    /// Read the lease: nothing is known of it.
    Read,
    /// Create it: there is none.
    Create,
    /// Swap it to this candidate: nobody holds it, or the holder's time is over.
    Take,
    /// Swap it to this candidate, which precedes the live holder.
    Preempt,
    /// Renew it: this candidate holds it and leads.
    Renew,
    /// Renew it, and do not lead: somebody who was overtaken may still be writing, until this moment.
    Hold(Moment),
    /// Renew it, and lead from then on: whoever was overtaken writes no more.
    Open,
    /// Somebody else holds it, until this moment unless it is renewed.
    WaitUntil(Moment),
}

/// How a lease is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Taking {
    /// Nobody holds it, or the holder's time is over.
    Free,
    /// From a live holder.
    Preempting,
}

impl Candidacy {
    /// What the lease calls for at `now`; `leading` says whether this process still has a valid grant.
    pub(in crate::election) fn decide(&self, now: Moment, leading: bool) -> Decision {
        let (record, since, from_the_start) = match &self.known {
            Known::Nothing => return Decision::Read,
            Known::Absent { held_until: Some(until), .. } if now < *until => {
                return Decision::WaitUntil(*until);
            }
            Known::Absent { .. } => return Decision::Create,
            Known::Present { record, since, from_the_start } => (record, *since, *from_the_start),
        };
        let Some(holder) = record.holder() else {
            return Decision::Take;
        };
        if holder == self.identity.as_str() {
            if self.hand().is_some() {
                return match self.precedence.overtaken() {
                    _ if !self.is_current() => Decision::Take,
                    _ if leading => Decision::Renew,
                    Some(overtaken) if now < overtaken.until => Decision::Hold(overtaken.until),
                    Some(_) => Decision::Open,
                    // A stretch that was interrupted is over, even if nobody else took the lease: a new term begins.
                    None => Decision::Take,
                };
            }
            if from_the_start {
                // What an earlier life of this candidate left behind.
                return Decision::Take;
            }
            // Another process with this identity: it is treated as any other holder.
        }
        let until = self.end_of(record, since);
        match self.preempts(record) {
            _ if now >= until => Decision::Take,
            Some(from) if now >= from => Decision::Preempt,
            from => Decision::WaitUntil(from.map_or(until, |from| until.min(from))),
        }
    }

    /// From when on this candidate may take the lease from its live holder.
    fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        self.precedence.preempts(record).filter(|_| record.holder() != Some(self.identity.as_str()))
    }

    /// Whether this candidate would preempt the holder, and keeps from it since that went on for ever.
    pub(in crate::election) fn keeps_the_peace(&self, now: Moment) -> bool {
        self.record().and_then(|record| self.preempts(record)).is_some_and(|from| now < from)
    }

    /// Whether it had to, or might have to, not long ago.
    pub(in crate::election) fn is_restless(&self, now: Moment) -> bool {
        self.precedence.is_restless(now)
    }

    /// Whether somebody who was overtaken may still be writing, so that the lease must not be anybody's.
    pub(in crate::election) fn waits(&self, now: Moment) -> bool {
        self.precedence.overtaken().is_some_and(|overtaken| now < overtaken.until)
    }

    /// If this candidate holds the lease and is not to lead yet: until when, unless the one that it has overtaken says
    /// before that its writes have ended.
    pub(in crate::election) fn holds_back_until(&self, now: Moment) -> Option<Moment> {
        match self.decide(now, false) {
            Decision::Hold(until) => Some(until),
            _ => None,
        }
    }

    /// Whether another candidate holds the lease, and is not to be preempted.
    pub(in crate::election) fn waits_for_a_holder(&self, now: Moment) -> bool {
        matches!(self.decide(now, false), Decision::WaitUntil(_))
    }

    /// Whether this candidate may take the lease at `now`, and whether from a live holder.
    pub(in crate::election) fn may_take(&self, now: Moment) -> Option<Taking> {
        match self.decide(now, false) {
            Decision::Create | Decision::Take => Some(Taking::Free),
            Decision::Preempt => Some(Taking::Preempting),
            _ => None,
        }
    }

    /// When the holder's time is over: the *recorded* duration (rule S6) from when it was heard of; a nonsensical one is
    /// read as this candidate's own.
    pub(super) fn end_of(&self, record: &LeaseRecord, since: Moment) -> Moment {
        since.saturating_add(record.duration().unwrap_or(self.timing.lease_duration()))
    }
}
