//! What a candidate writes into the lease.

use super::{decide::Decision, former::Formers, state::Machine, succession};
use crate::{
    election::preemption::{HOLDER_KEY, Handover, OwnTerm},
    leadership::Moment,
    lease::{LeaseRecord, LeaseUpdate, wall_clock},
};
use std::time::Duration;

impl Machine {
    /// Makes the claim that acquires the lease at `now`, and records it as tried.
    pub(super) fn acquisition(&mut self, now: Moment, wall_clock: String) -> LeaseUpdate {
        let preempts = self.decide(now, false) == Decision::Preempt;
        self.entry.precedence.taking(preempts);
        let formers = succession::of_a_claim(self, now);
        let record = self.record();
        let transitions = record.map_or(0, |record| following(record.transitions()));
        let mut claim = self.claim(&formers, now, transitions, wall_clock.clone(), wall_clock);
        if record.is_some_and(|record| record.holder().is_some()) {
            // The key in the lease belongs to the former holder and is removed with it, as Istio does.
            claim.annotations.entry(HOLDER_KEY).or_insert(None);
        }
        let record = record.cloned();
        self.claims.note(claim.clone(), now, record.as_ref());
        claim
    }

    /// Makes the claim that renews the lease at `now`. It differs from each earlier claim of the term. If nothing changed,
    /// the API server would write nothing. If a time came again, a candidate that had not seen the claims in between
    /// would see no renewal.
    pub(super) fn renewal(&self, now: Moment, wall_clock: String) -> LeaseUpdate {
        let record = self.record();
        let acquired = record.and_then(LeaseRecord::acquire_time).unwrap_or(&wall_clock).to_owned();
        let transitions = record.map_or(0, LeaseRecord::transitions);
        let renewed = wall_clock::later_than(record.and_then(LeaseRecord::renew_time), wall_clock);
        self.claim(&self.formers, now, transitions, acquired, renewed)
    }

    /// Makes the claim that tells the preempting holder of the end of this candidate's writes. It changes nothing else.
    pub(super) fn acknowledgement(&mut self) -> Option<LeaseUpdate> {
        let claim = self.record().and_then(Handover::acknowledgement);
        if claim.is_none() {
            // This crate did not write this.
            self.own = OwnTerm::default();
        }
        claim
    }

    /// Makes the claim that releases the lease. It removes this candidate's annotations, as Istio does.
    pub(super) fn release(&mut self, now: Moment, wall_clock: String) -> Option<LeaseUpdate> {
        if self.own.yields_until().is_some() {
            self.entry.rests_until = now.saturating_add(self.me.timing.retry_period());
        }
        let mut claim = self.record()?.released_at(wall_clock);
        let own = self.entry.precedence.annotations(0, None);
        claim.annotations.extend(own.into_keys().map(|name| (name, None)));
        Some(claim)
    }

    fn claim(
        &self,
        formers: &Formers,
        now: Moment,
        transitions: u64,
        acquire_time: String,
        renew_time: String,
    ) -> LeaseUpdate {
        let own = self.me.timing.lease_seconds();
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
        let annotations = self.entry.precedence.annotations(transitions, from);
        LeaseUpdate {
            holder: self.me.identity.to_string(),
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
