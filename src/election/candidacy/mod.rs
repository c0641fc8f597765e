//! A candidate: what it knows of the lease, of its own claims and of its way to the API server, and what follows from
//! that. Pure: no I/O, and the time is handed in.
//!
//! This file takes in news and judges whose the lease is; `claims` is what a candidate writes, `contact` how its calls
//! go, `decide` which call is next.

mod claims;
mod contact;
mod decide;

pub(super) use self::decide::{Call, Inputs, Next, Task};

use self::{
    claims::{Claims, Hand},
    contact::Contact,
};
use super::preemption::{OwnTerm, Precedence, Priority};
use crate::{
    leadership::{Moment, Term},
    lease::{Identity, LeaseRecord, LeaseTiming},
};

#[derive(Debug)]
pub(super) struct Candidacy {
    identity: Identity,
    timing: LeaseTiming,
    known: Known,
    claims: Claims,
    pub(super) contact: Contact,
    precedence: Precedence,
    /// This candidate's last term, for a candidate that preempts it.
    pub(super) own: OwnTerm,
    /// When this process found a lease that an earlier life of it held, and took it back. What that one had sent may land.
    inherited: Option<Moment>,
    /// When the last claim was tried that is known to have stood in the lease, answered or not.
    stood: Moment,
}

/// What the lease calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
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
pub(super) enum Taking {
    /// Nobody holds it, or the holder's time is over.
    Free,
    /// From a live holder.
    Preempting,
}

#[derive(Debug)]
enum Known {
    Nothing,
    /// There is none. If it was deleted under a holder's hands, that one may not have heard of it, and counts as holding
    /// it until its time is over.
    Absent {
        held_until: Option<Moment>,
        /// The uid of the object whose deletion was told. What is heard of it after that is from before.
        gone: Option<String>,
    },
    Present {
        record: LeaseRecord,
        /// Since when this process has seen the record say the same (rule S6): when it *heard* of it, never a time that
        /// stands in it.
        since: Moment,
        /// Whether it has said the same since this process first looked.
        from_the_start: bool,
    },
}

impl Candidacy {
    pub(super) fn new(identity: Identity, timing: LeaseTiming, priority: Option<Priority>) -> Self {
        Self {
            identity,
            timing,
            known: Known::Nothing,
            claims: Claims::default(),
            contact: Contact::new(timing),
            precedence: Precedence::new(priority, timing.lease_duration()),
            own: OwnTerm::None,
            inherited: None,
            stood: Moment::from_nanos(0),
        }
    }

    // --- news ---

    /// Takes in what was watched, or answered to a write, at the moment at which it was heard. Returns false for news that
    /// is older than what is known.
    pub(super) fn observe(&mut self, news: LeaseRecord, at: Moment) -> bool {
        if matches!(&self.known, Known::Absent { gone: Some(gone), .. } if gone == news.uid()) {
            return false;
        }
        let Some(known) = self.known.record().filter(|known| is_older(&news, known)) else {
            self.accept(news, at);
            return true;
        };
        if let Some(tried) = self.claims.tried(&news, &self.identity) {
            self.own.stood(news.term(), known);
            self.stood = self.stood.max(tried);
        }
        false
    }

    /// Takes in that there is no lease (any more), as `last` was its last version if that is known. Returns false when
    /// that is older than what is known.
    pub(super) fn observe_absence(&mut self, last: Option<&LeaseRecord>, at: Moment) -> bool {
        if self.record().zip(last).is_some_and(|(record, last)| is_older(last, record)) {
            return false;
        }
        let held_until = match &self.known {
            // It may just have been deleted: its holder hears of that by its watch, closes its gate, and creates it anew.
            Known::Nothing => Some(at.saturating_add(self.timing.pause())),
            Known::Present { .. } if self.is_mine() => {
                self.precedence.overtaken().map(|overtaken| overtaken.until)
            }
            Known::Present { record, since, .. } if record.holder().is_some() => {
                Some(self.end_of(record, *since))
            }
            Known::Present { .. } => None,
            Known::Absent { held_until, .. } => *held_until,
        };
        self.known = Known::Absent { held_until, gone: last.map(|last| last.uid().to_owned()) };
        self.own = OwnTerm::None;
        true
    }

    /// Takes in what was read. `before` is the version that was known when the read was sent: if nothing was heard since,
    /// the answer is believed even if versions have gone back (a restored backup, an absurd event).
    pub(super) fn observe_read(
        &mut self,
        news: Option<LeaseRecord>,
        before: Option<&str>,
        at: Moment,
    ) -> bool {
        match news {
            None => self.observe_absence(None, at),
            Some(news) if self.version() == before => {
                self.accept(news, at);
                true
            }
            Some(news) => self.observe(news, at),
        }
    }

    fn accept(&mut self, news: LeaseRecord, at: Moment) {
        let (since, from_the_start) = match &self.known {
            Known::Present { record, since, from_the_start } if record.says_the_same(&news) => {
                (*since, *from_the_start)
            }
            Known::Nothing => (at, self.claims.is_empty()),
            Known::Present { .. } | Known::Absent { .. } => (at, false),
        };
        self.claims.bind(&news, &self.identity);
        if let Some(tried) = self.claims.tried(&news, &self.identity) {
            self.stood = self.stood.max(tried);
        }
        self.known = Known::Present { record: news, since, from_the_start };
        let Some(record) = self.known.record() else { return };
        if self.is_mine() {
            self.own.stands(record.term());
        } else {
            self.own.meets(record);
        }
        // A lease that is not this candidate's settles nothing: its last claim may still be under way.
        if self.is_current() {
            self.precedence.observe_own(record, at);
        }
    }

    // --- whose the lease is ---

    /// What the lease calls for at `now`; `leading` says whether this process still has a valid grant.
    pub(super) fn decide(&self, now: Moment, leading: bool) -> Decision {
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
    pub(super) fn keeps_the_peace(&self, now: Moment) -> bool {
        self.record().and_then(|record| self.preempts(record)).is_some_and(|from| now < from)
    }

    /// Whether it had to, or might have to, not long ago.
    pub(super) fn is_restless(&self, now: Moment) -> bool {
        self.precedence.is_restless(now)
    }

    /// Whether somebody who was overtaken may still be writing, so that the lease must not be anybody's.
    pub(super) fn waits(&self, now: Moment) -> bool {
        self.precedence.overtaken().is_some_and(|overtaken| now < overtaken.until)
    }

    /// If this candidate holds the lease and is not to lead yet: until when, unless the one that it has overtaken says
    /// before that its writes have ended.
    pub(super) fn holds_back_until(&self, now: Moment) -> Option<Moment> {
        match self.decide(now, false) {
            Decision::Hold(until) => Some(until),
            _ => None,
        }
    }

    /// Whether another candidate holds the lease, and is not to be preempted.
    pub(super) fn waits_for_a_holder(&self, now: Moment) -> bool {
        matches!(self.decide(now, false), Decision::WaitUntil(_))
    }

    /// Whether this candidate may take the lease at `now`, and whether from a live holder.
    pub(super) fn may_take(&self, now: Moment) -> Option<Taking> {
        match self.decide(now, false) {
            Decision::Create | Decision::Take => Some(Taking::Free),
            Decision::Preempt => Some(Taking::Preempting),
            _ => None,
        }
    }

    /// Nobody is waited for any more: this candidate leads in `term`.
    pub(super) fn opened(&mut self, term: Term) {
        self.precedence.settle();
        self.own = OwnTerm::Open(term);
    }

    /// What is wrong with the lease, in words for a log.
    pub(super) fn oddity(&self) -> Option<&'static str> {
        let double = "another process contends with this identity; give each its own";
        let record = self.record()?;
        let odd = record.oddity().or_else(|| self.precedence.oddity(record));
        odd.or(self.has_a_double().then_some(double))
    }

    fn hand(&self) -> Option<Hand> {
        self.claims.hand(self.record()?, &self.identity)
    }

    /// Whether the lease holds a claim of this very process.
    pub(super) fn is_mine(&self) -> bool {
        matches!(self.hand(), Some(Hand::Last | Hand::Earlier))
    }

    /// Whether the lease holds the last claim of this very process, for as long as it was claimed: the others believe the
    /// duration that stands there.
    pub(super) fn is_current(&self) -> bool {
        self.hand() == Some(Hand::Last)
            && self.record().and_then(LeaseRecord::duration) >= Some(self.timing.lease_duration())
    }

    /// Whether another process stands in the lease with this one's identity.
    pub(super) fn has_a_double(&self) -> bool {
        let held = self.record().and_then(LeaseRecord::holder) == Some(self.identity.as_str());
        held && self.hand().is_none() && !matches!(self.known, Known::Present { from_the_start: true, .. })
    }

    /// The lease as it was last seen.
    pub(super) fn record(&self) -> Option<&LeaseRecord> {
        self.known.record()
    }

    /// The version of the lease as it was last seen.
    pub(super) fn version(&self) -> Option<&str> {
        self.record().map(LeaseRecord::resource_version)
    }

    /// When the holder's time is over: the *recorded* duration (rule S6) from when it was heard of; a nonsensical one is
    /// read as this candidate's own.
    fn end_of(&self, record: &LeaseRecord, since: Moment) -> Moment {
        since.saturating_add(record.duration().unwrap_or(self.timing.lease_duration()))
    }
}

impl Known {
    fn record(&self) -> Option<&LeaseRecord> {
        match self {
            Self::Present { record, .. } => Some(record),
            Self::Nothing | Self::Absent { .. } => None,
        }
    }
}

fn is_older(news: &LeaseRecord, known: &LeaseRecord) -> bool {
    matches!((news.version(), known.version()), (Some(news), Some(known)) if news < known)
}

#[cfg(test)]
mod next_tests;
#[cfg(test)]
mod next_world;
#[cfg(test)]
mod tests;
