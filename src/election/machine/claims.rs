//! The claims that a candidate has tried, and how it knows them in the lease.

use crate::{
    leadership::Moment,
    lease::{LeaseRecord, LeaseUpdate},
};
use std::{collections::VecDeque, time::Duration};

/// How many claims are remembered. A lease duration has room for fewer unanswered claims.
const CLAIMS: usize = 8;

/// What this process has claimed.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// The last claims. The newest is last.
    last: VecDeque<Claimed>,
    /// When the last claim or renewal was sent that the lease is known to have held, answered or not.
    pub(super) renewed: Moment,
    /// When the lease was last seen to hold no claim of this process any more.
    pub(super) lost_at: Moment,
    /// When a claim or a renewal was sent that was just answered. The gate opens or stays open by it.
    pub(super) answered: Option<Moment>,
}

#[derive(Clone, Debug)]
struct Claimed {
    /// Its holder, count and acquire time differ from every claim of another process with the same identity.
    claim: LeaseUpdate,
    /// When the claim was tried. It was sent after that.
    tried: Moment,
    /// The uid of the object that it was written into. None until a created object has been seen.
    uid: Option<String>,
    /// The version that it swaps; empty if it creates the lease. None once the outcome is known.
    expected_version: Option<String>,
}

/// Who wrote the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldBy {
    /// No candidate: there is no lease, or it has no holder.
    None,
    /// Another candidate.
    Other,
    /// Another process with this identity.
    Double,
    /// An earlier process with this identity.
    Inherited,
    /// A claim of this process, but in another object.
    Copy,
    /// A claim of this process, but not its last one, or with a shorter duration than it claimed, or one that it has
    /// lost since.
    Earlier,
    /// The last claim of this process, with the duration that it claimed, and never lost. The other candidates trust the
    /// duration in the lease.
    Current,
}

// === impl Claims ===

impl Claims {
    /// Notes that `claim` is tried at `now`, over the lease that `standing` shows.
    pub(super) fn note(&mut self, claim: LeaseUpdate, now: Moment, standing: Option<&LeaseRecord>) {
        if self.last.len() == CLAIMS {
            // Never drop the claim that the lease holds: it shows that the lease belongs to this process.
            let stands = standing.and_then(|record| self.find(record)) == Some(0);
            self.last.remove(usize::from(stands));
        }
        let expected_version = standing.map_or("", LeaseRecord::resource_version).to_owned();
        let uid = standing.map(|record| record.uid().to_owned());
        self.last.push_back(Claimed { claim, tried: now, uid, expected_version: Some(expected_version) });
    }

    /// The index of the claim that `record` holds, also if `record` is a copy in another object.
    fn find(&self, record: &LeaseRecord) -> Option<usize> {
        self.last.iter().rposition(|Claimed { claim, .. }| {
            record.holder() == Some(claim.holder.as_str())
                && record.transitions() == claim.transitions
                && record.acquire_time() == Some(claim.acquire_time.as_str())
        })
    }

    /// Which of these claims, made for `duration`, `record` holds.
    pub(super) fn held_by(&self, record: &LeaseRecord, duration: Duration) -> Option<HeldBy> {
        let place = self.find(record)?;
        let elsewhere = self.last[place].uid.as_deref().is_some_and(|uid| uid != record.uid());
        let last = place + 1 == self.last.len() && self.last[place].tried >= self.lost_at;
        let current = last && record.duration() >= Some(duration);
        let own = if current { HeldBy::Current } else { HeldBy::Earlier };
        Some(if elsewhere { HeldBy::Copy } else { own })
    }

    /// When the claim in `record` was tried. If the claim created the lease, this records the uid of the object.
    pub(super) fn recognise(&mut self, record: &LeaseRecord) -> Option<Moment> {
        let place = self.find(record)?;
        let claimed = &mut self.last[place];
        claimed.uid.get_or_insert_with(|| record.uid().to_owned());
        Some(claimed.tried)
    }

    /// Takes in that the lease held a claim or a renewal that was sent at `sent`.
    pub(super) fn stood(&mut self, sent: Moment) {
        self.renewed = self.renewed.max(sent);
    }

    /// Records that the outcome of the last claim is known: the API server refused it or carried it out.
    pub(super) fn settle_last(&mut self) {
        if let Some(last) = self.last.back_mut() {
            last.expected_version = None;
        }
    }

    /// Whether a claim without an answer swaps this version of the lease.
    pub(super) fn may_swap(&self, version: &str) -> bool {
        self.last.iter().any(|claimed| claimed.expected_version.as_deref() == Some(version))
    }

    /// When the next claim may be tried, so that no claim younger than `time` has to be forgotten. The oldest claim
    /// may stay because the lease holds it.
    pub(super) fn next_from(&self, time: Duration) -> Moment {
        let full = (self.last.len() == CLAIMS).then(|| self.last[1].tried);
        full.map_or(Moment::from_nanos(0), |since| since.saturating_add(time))
    }
}

// === impl HeldBy ===

impl HeldBy {
    pub(super) fn is_mine(self) -> bool {
        matches!(self, Self::Current | Self::Earlier)
    }
}
