//! The claims that a candidate writes into the lease, and how it recognises them.

use super::{
    Candidacy, Known,
    judge::{Decision, Hand},
};
use crate::{
    election::{preemption::Overtaken, wall_clock},
    leadership::Moment,
    lease::{Claim, HOLDER_KEY, LeaseRecord},
};
use std::{collections::VecDeque, time::Duration};

/// How many claims are remembered. A lease duration has room for fewer unanswered claims.
const CLAIMS: usize = 8;

/// The last claims of this process. The newest is last.
#[derive(Debug, Default)]
pub(super) struct Claims(VecDeque<Claimed>);

#[derive(Debug)]
struct Claimed {
    /// Its holder, count and acquire time differ from every claim of another process with the same identity.
    claim: Claim,
    /// When the claim was tried. It was sent after that.
    tried: Moment,
    /// The uid of the object that it was written into. None until a created object has been seen.
    uid: Option<String>,
    /// The version that it swaps; empty if it creates the lease. None once the outcome is known.
    over: Option<String>,
}

// === impl Claims ===

impl Claims {
    fn push(&mut self, claimed: Claimed, standing: Option<&LeaseRecord>) {
        if self.0.len() == CLAIMS {
            // Never drop the claim that the lease holds: it shows that the lease belongs to this process.
            let stands = standing.and_then(|record| self.find(record)) == Some(0);
            self.0.remove(usize::from(stands));
        }
        self.0.push_back(claimed);
    }

    /// The index of the claim that `record` holds, also if `record` is a copy in another object.
    fn find(&self, record: &LeaseRecord) -> Option<usize> {
        self.0.iter().rposition(|Claimed { claim, .. }| {
            record.holder() == Some(claim.holder.as_str())
                && record.transitions() == claim.transitions
                && record.acquire_time() == Some(claim.acquire_time.as_str())
        })
    }

    /// Which of these claims, made for `duration`, `record` holds.
    pub(super) fn hand(&self, record: &LeaseRecord, duration: Duration) -> Option<Hand> {
        let place = self.find(record)?;
        let elsewhere = self.0[place].uid.as_deref().is_some_and(|uid| uid != record.uid());
        let current = place + 1 == self.0.len() && record.duration() >= Some(duration);
        let own = if current { Hand::Current } else { Hand::Earlier };
        Some(if elsewhere { Hand::Copy } else { own })
    }

    /// When the claim in `record` was tried. If the claim created the lease, this records the uid of the object.
    pub(super) fn recognise(&mut self, record: &LeaseRecord) -> Option<Moment> {
        let place = self.find(record)?;
        let claimed = &mut self.0[place];
        claimed.uid.get_or_insert_with(|| record.uid().to_owned());
        Some(claimed.tried)
    }

    /// When the next claim may be tried, so that no claim younger than `time` has to be forgotten. The oldest claim
    /// may stay because the lease holds it.
    pub(super) fn next_from(&self, time: Duration) -> Moment {
        let full = (self.0.len() == CLAIMS).then(|| self.0[1].tried);
        full.map_or(Moment::from_nanos(0), |since| since.saturating_add(time))
    }
}

// === impl Candidacy ===

impl Candidacy {
    /// Makes the claim that acquires the lease at `now`, and records it as tried.
    pub(in crate::election) fn acquisition(&mut self, now: Moment, wall_clock: String) -> Claim {
        let preempting = self.decide(now, false) == Decision::Preempt;
        self.precedence.taking(self.overtakes(now), preempting);
        let record = self.known.record();
        let transitions = record.map_or(0, |record| following(record.transitions()));
        let mut claim = self.claim(now, transitions, wall_clock.clone(), wall_clock);
        if record.is_some_and(|record| record.holder().is_some()) {
            // The key in the lease belongs to the former holder and is removed with it, as Istio does.
            claim.annotations.entry(HOLDER_KEY).or_insert(None);
        }
        let claimed = Claimed {
            claim: claim.clone(),
            tried: now,
            uid: record.map(|record| record.uid().to_owned()),
            over: Some(self.version().unwrap_or_default().to_owned()),
        };
        self.claims.push(claimed, record);
        claim
    }

    /// Records that the outcome of the last claim is known: the API server refused it or carried it out.
    pub(in crate::election) fn claim_is_settled(&mut self) {
        if let Some(last) = self.claims.0.back_mut() {
            last.over = None;
        }
    }

    /// Whether an unanswered claim may still give the lease to this candidate. It may while the lease has the version
    /// that the claim swaps.
    pub(super) fn may_become_mine(&self) -> bool {
        let version = self.version().unwrap_or_default();
        self.claims.0.iter().any(|claimed| claimed.over.as_deref() == Some(version))
    }

    /// The holder whose writes may still be under way if this candidate takes the lease at `now`.
    fn overtakes(&self, now: Moment) -> Option<Overtaken> {
        let Known::Present { record, until, .. } = &self.known else { return None };
        let term = match self.hand() {
            Hand::None => return None,
            Hand::Current | Hand::Earlier | Hand::Copy => return self.overtaken(now),
            // An earlier process with this identity was waiting for the holder before it.
            Hand::Inherited | Hand::Double => record.handover().filter(|handover| !handover.done)?.from,
            Hand::Other => record.transitions(),
        };
        Some(Overtaken { term, until: *until }).filter(|overtaken| now < overtaken.until)
    }

    /// Makes the claim that renews the lease at `now`. It always differs from the claim that it replaces. If nothing
    /// changed, the API server would write nothing, and the other candidates would see no renewal.
    pub(in crate::election) fn renewal(&self, now: Moment, wall_clock: String) -> Claim {
        let record = self.record();
        let acquired = record.and_then(LeaseRecord::acquire_time).unwrap_or(&wall_clock).to_owned();
        let transitions = record.map_or(0, LeaseRecord::transitions);
        let renewed = wall_clock::other_than(record.and_then(LeaseRecord::renew_time), wall_clock);
        self.claim(now, transitions, acquired, renewed)
    }

    /// Makes the claim that releases the lease, as client-go writes it: no holder, one second, the same count. It
    /// removes this candidate's annotations, as Istio does.
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
        // While an overtaken holder may be writing, the next holder must wait for it too.
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

/// The count after `transitions`. The API stores an `int32`, so the count starts again after its maximum.
fn following(transitions: u64) -> u64 {
    const MOST: u64 = i32::MAX as u64;
    if transitions >= MOST { 0 } else { transitions + 1 }
}
