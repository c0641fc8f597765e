//! What a candidate writes into the lease.

use super::{
    claims::Hand,
    judge::Decision,
    state::{Candidacy, Known},
};
use crate::{
    election::{
        preemption::{HOLDER_KEY, Handover, Overtaken},
        wall_clock,
    },
    leadership::Moment,
    lease::{Claim, LeaseRecord},
};

impl Candidacy {
    /// The claim that acquires the lease at `now`, noted as tried.
    pub(in crate::election) fn acquisition(&mut self, now: Moment, wall_clock: String) -> Claim {
        let preempting = self.decide(now, false) == Decision::Preempt;
        self.precedence.taking(self.overtakes(now), preempting);
        let record = self.known.record();
        let transitions = record.map_or(0, |record| following(record.transitions()));
        let mut claim = self.claim(now, transitions, wall_clock.clone(), wall_clock);
        if record.is_some_and(|record| record.holder().is_some()) {
            // The key in the lease is that of the holder before, and goes with it, as with Istio's.
            claim.annotations.entry(HOLDER_KEY).or_insert(None);
        }
        self.claims.note(claim.clone(), now, record);
        claim
    }

    /// Whose writes may still be under way if the lease is taken at `now`.
    fn overtakes(&self, now: Moment) -> Option<Overtaken> {
        let Known::Present { record, until, .. } = &self.known else { return None };
        let term = match self.hand() {
            Hand::None => return None,
            Hand::Current | Hand::Earlier | Hand::Copy => return self.overtaken(now),
            // An earlier process with this identity waited for the holder before it.
            Hand::Inherited | Hand::Double => Handover::under_way(record)?.from,
            Hand::Other => record.transitions(),
        };
        Some(Overtaken { term, until: *until }).filter(|overtaken| now < overtaken.until)
    }

    /// The claim that renews the lease at `now`. It always differs from what it replaces: the API server carries out
    /// nothing where nothing changes, and the others would see no renewal.
    pub(in crate::election) fn renewal(&self, now: Moment, wall_clock: String) -> Claim {
        let record = self.record();
        let acquired = record.and_then(LeaseRecord::acquire_time).unwrap_or(&wall_clock).to_owned();
        let transitions = record.map_or(0, LeaseRecord::transitions);
        let renewed = wall_clock::other_than(record.and_then(LeaseRecord::renew_time), wall_clock);
        self.claim(now, transitions, acquired, renewed)
    }

    /// The claim that gives the lease up, as client-go writes it: no holder, for one second, at the same count. It leaves no
    /// annotation of this candidate behind, as Istio's.
    pub(in crate::election) fn release(&self, now: Moment, wall_clock: String) -> Claim {
        let transitions = self.record().map_or(0, LeaseRecord::transitions);
        let mut claim = self.claim(now, transitions, wall_clock.clone(), wall_clock);
        claim.holder.clear();
        claim.duration_seconds = 1;
        claim.annotations.values_mut().for_each(|value| *value = None);
        claim
    }

    fn claim(&self, now: Moment, transitions: u64, acquire_time: String, renew_time: String) -> Claim {
        let own = self.timing.lease_seconds();
        // While a holder that was overtaken may be writing, the next one must wait for it too.
        let overtaken = self.overtaken(now);
        let recorded = overtaken.and_then(|_| self.record()?.duration()).map_or(own, |it| it.as_secs());
        Claim {
            holder: self.identity.to_string(),
            duration_seconds: own.max(recorded),
            acquire_time,
            renew_time,
            transitions,
            annotations: self.precedence.annotations(transitions, overtaken),
        }
    }
}

/// The API's count is an `int32`: past its end it begins anew.
fn following(transitions: u64) -> u64 {
    const MOST: u64 = i32::MAX as u64;
    if transitions >= MOST { 0 } else { transitions + 1 }
}
