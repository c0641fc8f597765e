//! The claims that a candidate has tried, and how it knows its own hand in the lease.

use crate::{
    defect,
    leadership::Moment,
    lease::{Claim, LeaseRecord},
};
use std::{collections::VecDeque, time::Duration};

/// How many claims are remembered. A lease duration has room for fewer unanswered claims.
const CLAIMS: usize = 8;

/// The last claims of this process. The newest is last.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims(VecDeque<Claimed>);

#[derive(Clone, Debug)]
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

/// Who wrote the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// No candidate: there is no lease, or it has no holder.
    None,
    /// Another candidate.
    Other,
    /// Another process with this identity.
    Double,
    /// An earlier process with this identity.
    Inherited,
    /// The coordinator, which has named this candidate.
    Coordinator,
    /// A claim of this process, but in another object.
    Copy,
    /// A claim of this process, but not its last one, or with a shorter duration than it claimed.
    Earlier,
    /// The last claim of this process, with the duration that it claimed. The other candidates trust the duration in
    /// the lease.
    Current,
}

// === impl Claims ===

impl Claims {
    /// Notes that `claim` is tried at `now`, over the lease that `standing` shows.
    pub(super) fn note(&mut self, claim: Claim, now: Moment, standing: Option<&LeaseRecord>) {
        if self.0.len() == CLAIMS {
            // Never drop the claim that the lease holds: it shows that the lease belongs to this process.
            let stands = standing.and_then(|record| self.find(record)) == Some(0);
            self.0.remove(usize::from(stands));
        }
        let over = standing.map_or("", LeaseRecord::resource_version).to_owned();
        let uid = standing.map(|record| record.uid().to_owned());
        self.0.push_back(Claimed { claim, tried: now, uid, over: Some(over) });
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
        let elsewhere = self.0[place].uid.as_deref().is_some_and(|uid| uid != record.uid())
            && !defect::is_back("claim-without-uid");
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

    /// Records that the outcome of the last claim is known: the API server refused it or carried it out.
    pub(super) fn settle_last(&mut self) {
        if let Some(last) = self.0.back_mut() {
            last.over = None;
        }
    }

    /// Whether a claim without an answer swaps this version of the lease.
    pub(super) fn may_swap(&self, version: &str) -> bool {
        self.0.iter().any(|claimed| claimed.over.as_deref() == Some(version))
    }

    /// When the next claim may be tried, so that no claim younger than `time` has to be forgotten. The oldest claim
    /// may stay because the lease holds it.
    pub(super) fn next_from(&self, time: Duration) -> Moment {
        let full = (self.0.len() == CLAIMS).then(|| self.0[1].tried);
        full.map_or(Moment::from_nanos(0), |since| since.saturating_add(time))
    }
}

// === impl Hand ===

impl Hand {
    pub(super) fn is_mine(self) -> bool {
        matches!(self, Self::Current | Self::Earlier)
    }
}
