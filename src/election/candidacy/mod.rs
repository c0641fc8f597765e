//! A candidate: what it knows of the lease, of its own claims and of its way to the API server, and what follows from
//! that. Pure: no I/O, and the time is handed in.
//!
//! This file takes in news; `claims` is what a candidate writes, `contact` how its calls go, `judge` what the lease calls
//! for, `decide` which call is next.

mod claims;
mod contact;
mod decide;
mod judge;

#[cfg(test)]
pub(super) use self::judge::Decision;
pub(super) use self::{
    decide::{Call, Inputs, Next, Task},
    judge::Taking,
};

use self::{
    claims::{Claims, Hand},
    contact::Contact,
};
use super::preemption::{OwnTerm, Precedence, Priority};
use crate::{
    leadership::{Moment, Term},
    lease::{Identity, LeaseRecord, LeaseTiming},
};

/// All that a candidate decides by.
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
