//! What a candidate decides, from what it has seen and when. Pure: no I/O, and the time is handed in.

mod claims;

use self::claims::Claimed;
use super::{precedence::Precedence, priority::Priority};
use crate::{
    leadership::{Moment, Term},
    lease::{Identity, LeaseRecord, LeaseTiming},
};
use std::collections::VecDeque;

/// A candidate's knowledge of the lease.
#[derive(Debug)]
pub(super) struct Candidacy {
    identity: Identity,
    timing: LeaseTiming,
    precedence: Precedence,
    known: Known,
    /// The last claims that this process tried to write, the newest last, whether or not it heard of the outcomes.
    claimed: VecDeque<Claimed>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
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

#[derive(Debug)]
enum Known {
    Nothing,
    /// There is none. If it was deleted under a holder's hands, that one may not have heard of it, and counts as holding
    /// it until its time is over.
    Absent {
        held_until: Option<Moment>,
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
        let precedence = Precedence::new(priority, timing.lease_duration());
        Self { identity, timing, precedence, known: Known::Nothing, claimed: VecDeque::new() }
    }

    /// Takes in what was watched, or answered to a write, at the moment at which it was heard. Returns false for news that
    /// is older than what is known, which changes nothing.
    pub(super) fn observe(&mut self, news: LeaseRecord, at: Moment) -> bool {
        if self.record().is_some_and(|record| is_older(&news, record)) {
            return false;
        }
        self.accept(news, at);
        true
    }

    /// Takes in that there is no lease (any more), as `last` was its last version if that is known. Returns false when
    /// that is older than what is known.
    pub(super) fn observe_absence(&mut self, last: Option<&LeaseRecord>) -> bool {
        if self.record().zip(last).is_some_and(|(record, last)| is_older(last, record)) {
            return false;
        }
        let held_until = match &self.known {
            Known::Present { record, since, .. } if record.holder().is_some() && !self.is_mine() => {
                Some(self.end_of(record, *since))
            }
            Known::Present { .. } if self.is_mine() => {
                self.precedence.overtaken().map(|overtaken| overtaken.until)
            }
            Known::Present { .. } | Known::Nothing => None,
            Known::Absent { held_until } => *held_until,
        };
        self.known = Known::Absent { held_until };
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
            None => self.observe_absence(None),
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
            Known::Nothing => (at, self.claimed.is_empty()),
            Known::Present { .. } | Known::Absent { .. } => (at, false),
        };
        self.known = Known::Present { record: news, since, from_the_start };
        // A lease that is not this candidate's settles nothing: its last claim may still be under way.
        if let (Some(record), true) = (self.known.record(), self.is_current()) {
            self.precedence.observe_own(record, at);
        }
    }

    /// What to do at `now`; `leading` says whether this process still has a valid grant.
    pub(super) fn decide(&self, now: Moment, leading: bool) -> Decision {
        let (record, since, from_the_start) = match &self.known {
            Known::Nothing => return Decision::Read,
            Known::Absent { held_until: Some(until) } if now < *until => return Decision::WaitUntil(*until),
            Known::Absent { .. } => return Decision::Create,
            Known::Present { record, since, from_the_start } => (record, *since, *from_the_start),
        };
        let Some(holder) = record.holder() else {
            return Decision::Take;
        };
        if holder == self.identity.as_str() {
            if self.is_mine() {
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

    /// Whether the holder has taken the lease from `term`, which was alive, and waits for the end of its writes.
    pub(super) fn awaits(&self, term: &Term) -> bool {
        // What stands in a lease of its own is nobody's preemption.
        self.record().filter(|_| !self.is_mine()).is_some_and(|record| {
            let handover = record.handover().filter(|handover| !handover.done);
            record.uid() == term.lease_uid() && handover.is_some_and(|it| it.from == term.transitions())
        })
    }

    /// Whether somebody who was overtaken may still be writing, so that the lease must not be anybody's.
    pub(super) fn waits(&self, now: Moment) -> bool {
        self.precedence.overtaken().is_some_and(|overtaken| now < overtaken.until)
    }

    /// Nobody is waited for any more: this candidate leads.
    pub(super) fn opened(&mut self) {
        self.precedence.settle();
    }

    /// What is wrong with the lease, in words for a log.
    pub(super) fn oddity(&self) -> Option<&'static str> {
        let double = "another process contends with this identity; give each its own";
        let record = self.record()?;
        let odd = record.oddity().or_else(|| self.precedence.oddity(record));
        odd.or(self.has_a_double().then_some(double))
    }

    /// Whether the lease holds a claim of this very process.
    pub(super) fn is_mine(&self) -> bool {
        self.record()
            .is_some_and(|record| self.claimed.iter().any(|claimed| claimed.is_in(record, &self.identity)))
    }

    /// Whether the lease holds the last claim of this very process, for as long as it was claimed: the others believe the
    /// duration that stands there.
    pub(super) fn is_current(&self) -> bool {
        let claimed = self.record().zip(self.claimed.back());
        claimed.is_some_and(|(record, claimed)| {
            claimed.is_in(record, &self.identity) && record.duration() >= Some(self.timing.lease_duration())
        })
    }

    /// Whether another process stands in the lease with this one's identity.
    pub(super) fn has_a_double(&self) -> bool {
        let held = self.record().and_then(LeaseRecord::holder) == Some(self.identity.as_str());
        held && !self.is_mine() && !matches!(self.known, Known::Present { from_the_start: true, .. })
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
#[path = "candidacy_tests.rs"]
mod tests;
