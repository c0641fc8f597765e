//! What a candidate writes into the lease.

use super::{
    claims::Hand,
    former::{Formers, Who},
    judge::Decision,
    state::{Candidacy, Known},
};
use crate::{
    election::{
        early::HOLDER_POD,
        preemption::{HOLDER_KEY, Handover, OwnTerm},
        wall_clock,
    },
    leadership::Moment,
    lease::{Claim, LeaseRecord},
};
use std::time::Duration;

impl Candidacy {
    /// Makes the claim that acquires the lease at `now`, and records it as tried.
    pub(in crate::election) fn acquisition(&mut self, now: Moment, wall_clock: String) -> Claim {
        let decision = self.decide(now, false);
        self.precedence.taking(decision == Decision::Preempt);
        if decision == Decision::Succeed {
            self.inherited_until = now.saturating_add(self.timing.tolerated_skew());
        }
        let formers = self.formers_of_a_claim(now);
        self.formers.hold_back = formers.until(now).is_some();
        let record = self.known.record();
        let transitions = record.map_or(0, |record| following(record.transitions()));
        let mut claim = self.claim(&formers, now, transitions, wall_clock.clone(), wall_clock);
        if record.is_some_and(|record| record.holder().is_some()) {
            // The key in the lease belongs to the former holder and is removed with it, as Istio does. So does its pod.
            claim.annotations.entry(HOLDER_KEY).or_insert(None);
            claim.annotations.entry(HOLDER_POD).or_insert(None);
        }
        claim.annotations.extend(self.remaining_standbys(now));
        self.claims.note(claim.clone(), now, record);
        self.opening.claim(now, self.timing);
        claim
    }

    /// Who may still write if this candidate takes the lease at `now`.
    fn formers_of_a_claim(&self, now: Moment) -> Formers {
        let mut formers = self.formers.clone();
        if let Known::Present { record, until, .. } = &self.known
            && self.hand() == Hand::Other
        {
            formers.add(Who::holder_of(record), self.early.settles(record, *until, now), now);
        }
        formers
    }

    /// Makes the claim that renews the lease at `now`. It differs from each earlier claim of the term. If nothing changed,
    /// the API server would write nothing. If a time came again, a candidate that had not seen the claims in between
    /// would see no renewal.
    pub(in crate::election) fn renewal(&self, now: Moment, wall_clock: String) -> Claim {
        let record = self.record();
        let acquired = record.and_then(LeaseRecord::acquire_time).unwrap_or(&wall_clock).to_owned();
        let transitions = record.map_or(0, LeaseRecord::transitions);
        let renewed = wall_clock::later_than(record.and_then(LeaseRecord::renew_time), wall_clock);
        self.claim(&self.formers, now, transitions, acquired, renewed)
    }

    /// Makes the claim that tells the preempting holder of the end of this candidate's writes. It changes nothing else.
    pub(in crate::election) fn acknowledgement(&mut self) -> Option<Claim> {
        let claim = self.known.record().and_then(Handover::acknowledgement);
        if claim.is_some() {
            self.own.tells();
        } else {
            // This crate did not write this.
            self.own = OwnTerm::None;
        }
        claim
    }

    /// Makes the claim that releases the lease, as client-go writes it: no holder, one second, the same count. It
    /// removes this candidate's annotations, as Istio does.
    pub(in crate::election) fn release(&mut self, now: Moment, wall_clock: String) -> Claim {
        if self.decide(now, false) == Decision::GiveBack {
            self.opening.rest(now, self.timing);
        }
        let transitions = self.record().map_or(0, LeaseRecord::transitions);
        // Its time differs from that of the acquisition, also if the wall clock stands still.
        let time = wall_clock::later_than(self.record().and_then(LeaseRecord::renew_time), wall_clock);
        let mut claim = self.claim(&self.formers, now, transitions, time.clone(), time);
        claim.holder.clear();
        claim.duration_seconds = 1;
        claim.annotations.values_mut().for_each(|value| *value = None);
        claim
    }

    fn claim(
        &self,
        formers: &Formers,
        now: Moment,
        transitions: u64,
        acquire_time: String,
        renew_time: String,
    ) -> Claim {
        let own = self.timing.lease_seconds();
        // While a former writer may be writing, the next holder must wait for it too.
        let (longest, from) = match (formers.until(now), self.record()) {
            (Some(until), record) => {
                let recorded = record.and_then(LeaseRecord::sane_duration).unwrap_or_default();
                let rest = until.saturating_since(now) + Duration::from_nanos(999_999_999);
                let asked = record.and_then(|record| formers.asked(record, now)).unwrap_or(transitions);
                (rest.max(recorded).as_secs(), Some(asked))
            }
            (None, _) => (0, None),
        };
        let mut annotations = self.precedence.annotations(transitions, from);
        annotations.extend(self.early.annotation(self.identity.as_str(), transitions));
        Claim {
            holder: self.identity.to_string(),
            duration_seconds: own.max(longest),
            acquire_time,
            renew_time,
            transitions,
            annotations,
        }
    }
}

/// The count after `transitions`. The API stores an `int32`, so the count starts again after its maximum.
fn following(transitions: u64) -> u64 {
    const MOST: u64 = i32::MAX as u64;
    if transitions >= MOST { 0 } else { transitions + 1 }
}
