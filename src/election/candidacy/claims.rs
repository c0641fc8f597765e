//! What a candidate writes into the lease, and how it knows its own hand.

use super::{Candidacy, Known, judge::Decision};
use crate::{
    election::{preemption::Overtaken, wall_clock},
    leadership::Moment,
    lease::{Claim, HOLDER_KEY, Identity, LeaseRecord},
};
use std::{collections::VecDeque, time::Duration};

/// Claims that are remembered: more than fit into a lease without an answer.
const CLAIMS: usize = 8;

/// The last claims of this process, the newest last.
#[derive(Debug, Default)]
pub(super) struct Claims(VecDeque<Claimed>);

/// What tells a claim of this process from one of another process with the same identity.
#[derive(Debug)]
struct Claimed {
    /// Of the object that it was written into; none until a created one has been seen.
    uid: Option<String>,
    transitions: u64,
    acquire_time: String,
    /// When it was tried; it was sent after that.
    tried: Moment,
    /// The version that it swaps; none for one that creates the lease.
    over: Option<String>,
    /// Whether it was carried out is not known.
    unanswered: bool,
}

/// Whose hand the spec of a lease shows, if it is this process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// The last claim's.
    Last,
    /// That of a claim before it.
    Earlier,
    /// A claim's, but in another object: a copy.
    Copy,
}

// === impl Claims ===

impl Claims {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, claimed: Claimed, standing: Option<&LeaseRecord>, identity: &Identity) {
        if self.0.len() == CLAIMS {
            // Never the one that stands in the lease: by it the lease is known to be this process's.
            let stands = |first: &Claimed| standing.is_some_and(|record| first.is_in(record, identity));
            let stands = self.0.front().is_some_and(stands);
            self.0.remove(usize::from(stands));
        }
        self.0.push_back(claimed);
    }

    pub(super) fn hand(&self, record: &LeaseRecord, identity: &Identity) -> Option<Hand> {
        let place = self.0.iter().rposition(|claimed| claimed.is_in(record, identity))?;
        let elsewhere = self.0[place].uid.as_deref().is_some_and(|uid| uid != record.uid());
        let last = place + 1 == self.0.len();
        Some(if elsewhere {
            Hand::Copy
        } else if last {
            Hand::Last
        } else {
            Hand::Earlier
        })
    }

    /// When the claim that stands in `record` was tried.
    pub(super) fn tried(&self, record: &LeaseRecord, identity: &Identity) -> Option<Moment> {
        self.0.iter().rfind(|claimed| claimed.is_in(record, identity)).map(|claimed| claimed.tried)
    }

    /// When the next one may be tried, if no more than are remembered are to be tried within `time`. The oldest one may be
    /// there because it stands in the lease.
    pub(super) fn next_from(&self, time: Duration) -> Moment {
        let full = (self.0.len() == CLAIMS).then(|| self.0[1].tried);
        full.map_or(Moment::from_nanos(0), |since| since.saturating_add(time))
    }

    /// Takes in which object a created lease has turned out to be.
    pub(super) fn bind(&mut self, record: &LeaseRecord, identity: &Identity) {
        for claimed in &mut self.0 {
            if claimed.uid.is_none() && claimed.is_in(record, identity) {
                claimed.uid = Some(record.uid().to_owned());
            }
        }
    }

    /// Takes in that the outcome of the last claim is known.
    pub(super) fn settle_last(&mut self) {
        if let Some(last) = self.0.back_mut() {
            last.unanswered = false;
        }
    }

    /// Whether a claim may still be carried out while the lease is at `version`.
    fn may_land_on(&self, version: Option<&str>) -> bool {
        self.0.iter().any(|claimed| claimed.unanswered && claimed.over.as_deref() == version)
    }
}

impl Claimed {
    fn is_in(&self, record: &LeaseRecord, identity: &Identity) -> bool {
        record.holder() == Some(identity.as_str())
            && record.transitions() == self.transitions
            && record.acquire_time() == Some(self.acquire_time.as_str())
    }
}

// === impl Candidacy ===

impl Candidacy {
    /// The claim that acquires the lease at `now`, noted as tried.
    pub(in crate::election) fn acquisition(&mut self, now: Moment, wall_clock: String) -> Claim {
        let preempting = self.decide(now, false) == Decision::Preempt;
        self.precedence.taking(self.overtakes(now), preempting);
        if let Known::Present { record, since, from_the_start: true } = &self.known
            && record.holder() == Some(self.identity.as_str())
            && self.hand().is_none()
        {
            self.inherited = Some(*since);
        }
        let record = self.known.record();
        let transitions = record.map_or(0, |record| following(record.transitions()));
        let claimed = Claimed {
            uid: record.map(|record| record.uid().to_owned()),
            transitions,
            acquire_time: wall_clock.clone(),
            tried: now,
            over: record.map(|record| record.resource_version().to_owned()),
            unanswered: true,
        };
        self.claims.push(claimed, record, &self.identity);
        let mut claim = self.claim(now, transitions, wall_clock.clone(), wall_clock);
        if self.record().is_some_and(|record| record.holder().is_some()) {
            // The key in the lease is that of the holder before, and goes with it, as with Istio's.
            claim.annotations.entry(HOLDER_KEY).or_insert(None);
        }
        claim
    }

    /// Takes in that the API server has refused the last claim, or has carried it out.
    pub(in crate::election) fn claim_is_settled(&mut self) {
        self.claims.settle_last();
    }

    /// Whether a claim without an answer may make the lease this candidate's yet.
    pub(super) fn may_become_mine(&self) -> bool {
        self.claims.may_land_on(self.version())
    }

    /// Who may still be writing if the lease is taken at `now`.
    fn overtakes(&self, now: Moment) -> Option<Overtaken> {
        let Known::Present { record, since, .. } = &self.known else {
            return None;
        };
        let until = self.end_of(record, *since);
        let overtaken = if self.hand().is_some() {
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

    /// The claim that renews the lease at `now`. It always differs from what it replaces: the API server carries out
    /// nothing where nothing changes, and the others would see no renewal.
    pub(in crate::election) fn renewal(&self, now: Moment, wall_clock: String) -> Claim {
        let record = self.record();
        let acquired = record.and_then(LeaseRecord::acquire_time).unwrap_or(&wall_clock).to_owned();
        let transitions = record.map_or(0, LeaseRecord::transitions);
        let renewed = wall_clock::other_than(record.and_then(LeaseRecord::renew_time), wall_clock);
        self.claim(now, transitions, acquired, renewed)
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

/// The API's count is an `int32`: past its end it begins anew.
fn following(transitions: u64) -> u64 {
    const MOST: u64 = i32::MAX as u64;
    if transitions >= MOST { 0 } else { transitions + 1 }
}
