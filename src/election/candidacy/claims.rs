//! What a candidate writes into the lease, and how it knows its own hand.

use super::{Candidacy, Decision, Known};
use crate::{
    election::precedence::Overtaken,
    leadership::Moment,
    lease::{Claim, HOLDER_KEY, Identity, LeaseRecord},
};

/// Claims without an answer that are remembered: more than fit into a lease.
const CLAIMS: usize = 8;

/// What tells a claim of this process from one of another process with the same identity.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claimed {
    transitions: u64,
    acquire_time: String,
}

// === impl Candidacy ===

impl Candidacy {
    /// The claim that acquires the lease at `now`, noted as tried.
    pub(in crate::election) fn acquisition(&mut self, now: Moment, wall_clock: String) -> Claim {
        let preempting = self.decide(now, false) == Decision::Preempt;
        self.precedence.taking(self.overtakes(now), preempting);
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
        let mut claim = self.claim(now, transitions, wall_clock.clone(), wall_clock);
        if self.record().is_some_and(|record| record.holder().is_some()) {
            // The key in the lease is that of the holder before, and goes with it, as with Istio's.
            claim.annotations.entry(HOLDER_KEY).or_insert(None);
        }
        claim
    }

    /// Who may still be writing if the lease is taken at `now`.
    fn overtakes(&self, now: Moment) -> Option<Overtaken> {
        let Known::Present { record, since, .. } = &self.known else {
            return None;
        };
        let until = self.end_of(record, *since);
        let overtaken = if self.is_mine() {
            self.precedence.overtaken()
        } else if record.holder()? == self.identity.as_str() {
            // An earlier life of this candidate waited for somebody.
            let handover = record.handover().filter(|handover| !handover.done);
            handover.map(|handover| Overtaken { term: handover.from, until })
        } else {
            Some(Overtaken { term: record.transitions(), until })
        };
        overtaken.filter(|overtaken| now < overtaken.until)
    }

    /// The claim that renews the lease at `now`.
    pub(in crate::election) fn renewal(&self, now: Moment, wall_clock: String) -> Claim {
        let acquired = self.record().and_then(LeaseRecord::acquire_time).unwrap_or(&wall_clock).to_owned();
        let transitions = self.record().map_or(0, LeaseRecord::transitions);
        self.claim(now, transitions, acquired, wall_clock)
    }

    /// The claim that gives the lease up, as client-go writes it: nobody, for one second, at the same count.
    pub(in crate::election) fn release(&self, wall_clock: String) -> Claim {
        let transitions = self.record().map_or(0, LeaseRecord::transitions);
        Claim {
            holder: String::new(),
            duration_seconds: 1,
            acquire_time: wall_clock.clone(),
            renew_time: wall_clock,
            transitions,
            annotations: self.precedence.no_annotations(),
        }
    }

    fn claim(&self, now: Moment, transitions: u64, acquire_time: String, renew_time: String) -> Claim {
        let own = self.timing.lease_seconds();
        // While somebody who was overtaken may be writing, whoever comes next must wait for that one too.
        let overtaken = self.precedence.overtaken().filter(|overtaken| now < overtaken.until);
        let recorded = overtaken.and_then(|_| self.record()?.duration()).map_or(own, |it| it.as_secs());
        Claim {
            holder: self.identity.to_string(),
            duration_seconds: own.max(recorded),
            acquire_time,
            renew_time,
            transitions,
            annotations: self.precedence.annotations(transitions, now),
        }
    }
}

// === impl Claimed ===

impl Claimed {
    pub(super) fn is_in(&self, record: &LeaseRecord, identity: &Identity) -> bool {
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
