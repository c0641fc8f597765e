//! A candidate: what it knows about the lease, its own claims and its calls, and what it decides. It is pure: it does
//! no I/O, and the caller passes the time.
//!
//! This file takes in news. `claims` makes what a candidate writes, `contact` records how its calls go, `judge`
//! decides what to do about the lease, and `decide` picks the next call.

mod claims;
mod contact;
mod decide;
mod judge;

pub(super) use self::{
    decide::{Inputs, Next, Task},
    judge::Decision,
};

use self::{claims::Claims, contact::Contact, judge::Hand};
use super::preemption::{OwnTerm, Precedence, Priority};
use crate::{
    leadership::{Moment, Term},
    lease::{Identity, LeaseRecord, LeaseTiming},
};

/// Everything that a candidate's decisions depend on.
#[derive(Debug)]
pub(super) struct Candidacy {
    identity: Identity,
    timing: LeaseTiming,
    known: Known,
    claims: Claims,
    pub(super) contact: Contact,
    pub(super) precedence: Precedence,
    /// This candidate's last term, which another candidate may have preempted.
    pub(super) own: OwnTerm,
    /// Until this moment, a write of an earlier process with this identity may take effect.
    inherited_until: Moment,
    /// When the last claim or renewal was sent that the lease is known to have held, answered or not.
    renewed: Moment,
}

/// The lease, as last seen.
#[derive(Debug)]
enum Known {
    Nothing,
    /// There is no lease.
    Absent {
        /// Until this moment the last holder still counts as the holder, since it may not know of the deletion.
        until: Moment,
        /// The uid of the deleted object. Later news about this object is old.
        gone: Option<String>,
    },
    Present {
        record: LeaseRecord,
        /// When the holder's time is over: the *recorded* duration (rule S6), counted from when this process *first
        /// saw* this record. It never depends on a time in the record. If the duration makes no sense, this
        /// candidate's own duration counts.
        until: Moment,
        /// The record has not changed since this process first saw it, and it names this identity. An earlier process
        /// left it.
        inherited: bool,
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
            inherited_until: Moment::from_nanos(0),
            renewed: Moment::from_nanos(0),
        }
    }

    // --- news ---

    /// Takes in news from the watch, or from the answer to a write, that arrived at `at`. If the news is older than
    /// what is known, it only tells about this candidate's own past.
    pub(super) fn observe(&mut self, news: LeaseRecord, at: Moment) {
        if matches!(&self.known, Known::Absent { gone: Some(gone), .. } if gone == news.uid()) {
            return;
        }
        let Some(known) = self.known.record().filter(|known| is_older(&news, known)) else {
            return self.accept(news, at);
        };
        if let Some(tried) = self.claims.recognise(&news) {
            self.own.stood(news.term(), known);
            self.stood(tried);
        }
    }

    /// Takes in that there is no lease (any more). `last` is its last version, if known. Ignored if `last` is older
    /// than what is known.
    pub(super) fn observe_absence(&mut self, last: Option<&LeaseRecord>, at: Moment) {
        if self.record().zip(last).is_some_and(|(record, last)| is_older(last, record)) {
            return;
        }
        let until = match &self.known {
            // It may just have been deleted. Its holder sees this by its watch, closes its gate, and creates it
            // again.
            Known::Nothing => at.saturating_add(self.timing.pause()),
            Known::Present { .. } if self.is_mine() => {
                self.precedence.overtaken().map_or(at, |overtaken| overtaken.until)
            }
            Known::Present { until, .. } | Known::Absent { until, .. } => *until,
        };
        self.known = Known::Absent { until, gone: last.map(|last| last.uid().to_owned()) };
        self.own = OwnTerm::None;
    }

    /// Takes in the answer to a read. `before` is the version that was known when the read was sent. If no news
    /// arrived since, the answer is trusted even if its version is lower (a restored backup, an absurd event).
    pub(super) fn observe_read(&mut self, news: Option<LeaseRecord>, before: Option<&str>, at: Moment) {
        match news {
            None => self.observe_absence(None, at),
            Some(news) if self.version() == before => self.accept(news, at),
            Some(news) => self.observe(news, at),
        }
    }

    fn accept(&mut self, news: LeaseRecord, at: Moment) {
        if let Some(tried) = self.claims.recognise(&news) {
            self.stood(tried);
        }
        let (until, inherited) = match &self.known {
            Known::Present { record, until, inherited } if record.says_the_same(&news) => {
                (*until, *inherited)
            }
            known => {
                let duration = news.duration().unwrap_or(self.timing.lease_duration());
                let inherited = matches!(known, Known::Nothing) && self.is_named_in(&news);
                if inherited {
                    self.inherited_until = at.saturating_add(self.timing.tolerated_skew());
                }
                (news.holder().map_or(at, |_| at.saturating_add(duration)), inherited)
            }
        };
        self.known = Known::Present { record: news, until, inherited };
        let (hand, Some(record)) = (self.hand(), self.known.record()) else { return };
        if hand.is_mine() {
            self.own.stands(record.term());
        } else {
            self.own.meets(record);
        }
        // If the lease is not this candidate's, its last claim may still be under way.
        if hand == Hand::Current {
            self.precedence.observe_own(record, at);
        }
    }

    /// Takes in that the lease held a claim or a renewal that was sent at `sent`.
    pub(super) fn stood(&mut self, sent: Moment) {
        self.renewed = self.renewed.max(sent);
    }

    /// Takes in that this candidate leads in `term`, so it no longer waits for a former holder.
    pub(super) fn opened(&mut self, term: Term) {
        self.precedence.settle();
        self.own = OwnTerm::Open(term);
    }

    // --- what is known ---

    /// What is wrong with the lease, in words for the log.
    pub(super) fn oddity(&self) -> Option<&'static str> {
        let double = "another process uses this identity; give each process its own";
        let record = self.record()?;
        let odd = record.oddity().or_else(|| self.precedence.oddity(record));
        odd.or((self.hand() == Hand::Double).then_some(double))
    }

    /// The lease, as last seen.
    pub(super) fn record(&self) -> Option<&LeaseRecord> {
        self.known.record()
    }

    /// The version of the lease, as last seen.
    pub(super) fn version(&self) -> Option<&str> {
        self.record().map(LeaseRecord::resource_version)
    }

    fn is_named_in(&self, record: &LeaseRecord) -> bool {
        record.holder() == Some(self.identity.as_str())
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
