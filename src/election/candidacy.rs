//! What a candidate decides, from what it has seen and when. Pure: no I/O, and the time is handed in.

use crate::{
    leadership::Moment,
    lease::{Claim, Identity, LeaseRecord, LeaseTiming},
};
use std::collections::VecDeque;

/// Claims without an answer that are remembered: more than fit into a lease.
const CLAIMS: usize = 8;

/// A candidate's knowledge of the lease.
#[derive(Debug)]
pub(super) struct Candidacy {
    identity: Identity,
    timing: LeaseTiming,
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
    /// Renew it: this candidate holds it and leads.
    Renew,
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

/// What tells a claim of this process from one of another process with the same identity.
#[derive(Debug, PartialEq, Eq)]
struct Claimed {
    transitions: u64,
    acquire_time: String,
}

impl Candidacy {
    pub(super) fn new(identity: Identity, timing: LeaseTiming) -> Self {
        Self { identity, timing, known: Known::Nothing, claimed: VecDeque::new() }
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
                // A stretch that was interrupted is over, even if nobody else took the lease: a new term begins.
                return if leading && self.is_current() { Decision::Renew } else { Decision::Take };
            }
            if from_the_start {
                // What an earlier life of this candidate left behind.
                return Decision::Take;
            }
            // Another process with this identity: it is treated as any other holder.
        }
        let until = self.end_of(record, since);
        if now >= until { Decision::Take } else { Decision::WaitUntil(until) }
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
        match &self.known {
            Known::Present { record, .. } => Some(record),
            Known::Nothing | Known::Absent { .. } => None,
        }
    }

    /// The version of the lease as it was last seen.
    pub(super) fn version(&self) -> Option<&str> {
        self.record().map(LeaseRecord::resource_version)
    }

    /// The claim that acquires the lease, noted as tried.
    pub(super) fn acquisition(&mut self, wall_clock: String) -> Claim {
        let transitions = self.record().map_or(0, |record| following(record.transitions()));
        if self.claimed.len() == CLAIMS {
            // Never the one that stands in the lease: by it the lease is known to be this process's.
            let standing = self
                .claimed
                .front()
                .zip(self.record())
                .is_some_and(|(first, record)| first.is_in(record, &self.identity));
            self.claimed.remove(usize::from(standing));
        }
        self.claimed.push_back(Claimed { transitions, acquire_time: wall_clock.clone() });
        self.claim(self.identity.as_str(), transitions, wall_clock.clone(), wall_clock)
    }

    /// The claim that renews the lease.
    pub(super) fn renewal(&self, wall_clock: String) -> Claim {
        let acquired = self.record().and_then(LeaseRecord::acquire_time).unwrap_or(&wall_clock).to_owned();
        let transitions = self.record().map_or(0, LeaseRecord::transitions);
        self.claim(self.identity.as_str(), transitions, acquired, wall_clock)
    }

    /// The claim that gives the lease up, as client-go writes it: nobody, for one second, at the same count.
    pub(super) fn release(&self, wall_clock: String) -> Claim {
        let transitions = self.record().map_or(0, LeaseRecord::transitions);
        Claim { duration_seconds: 1, ..self.claim("", transitions, wall_clock.clone(), wall_clock) }
    }

    /// When the holder's time is over: the *recorded* duration (rule S6) from when it was heard of; a nonsensical one is
    /// read as this candidate's own.
    fn end_of(&self, record: &LeaseRecord, since: Moment) -> Moment {
        since.saturating_add(record.duration().unwrap_or(self.timing.lease_duration()))
    }

    fn claim(&self, holder: &str, transitions: u64, acquire_time: String, renew_time: String) -> Claim {
        let duration_seconds = self.timing.lease_seconds();
        Claim { holder: holder.to_owned(), duration_seconds, acquire_time, renew_time, transitions }
    }
}

impl Claimed {
    fn is_in(&self, record: &LeaseRecord, identity: &Identity) -> bool {
        record.holder() == Some(identity.as_str())
            && record.transitions() == self.transitions
            && record.acquire_time() == Some(self.acquire_time.as_str())
    }
}

/// The API's count is an `int32`: past its end it begins anew.
fn following(transitions: u64) -> u64 {
    const MOST: u64 = i32::MAX as u64;
    if transitions >= MOST { 0 } else { transitions + 1 }
}

fn is_older(news: &LeaseRecord, known: &LeaseRecord) -> bool {
    matches!((news.version(), known.version()), (Some(news), Some(known)) if news < known)
}

#[cfg(test)]
#[path = "candidacy_tests.rs"]
mod tests;
