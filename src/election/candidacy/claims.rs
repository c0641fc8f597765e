//! The claims that a candidate has tried, and how it knows its own hand in the lease.

use crate::{
    leadership::Moment,
    lease::{Claim, LeaseRecord},
};
use std::{collections::VecDeque, time::Duration};

/// Claims that are remembered: more than fit into a lease without an answer.
const CLAIMS: usize = 8;

/// The last claims of this process, the newest last.
#[derive(Debug, Default)]
pub(super) struct Claims(VecDeque<Claimed>);

#[derive(Debug)]
struct Claimed {
    /// Its holder, count and acquire time tell it from a claim of another process with the same identity.
    claim: Claim,
    /// When it was tried; it was sent after that.
    tried: Moment,
    /// Of the object that it was written into; none until a created one has been seen.
    uid: Option<String>,
    /// The version that it swaps, empty for one that creates the lease. None once it is known whether it was carried out.
    over: Option<String>,
}

/// Whose hand the lease shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// That of no candidate: there is no lease, or no holder in it.
    None,
    /// Another candidate's.
    Other,
    /// That of another process with this identity.
    Double,
    /// That of an earlier process with this identity.
    Inherited,
    /// A claim of this very process, but in another object.
    Copy,
    /// A claim of this very process, but not its last one, or for a shorter time than it was claimed.
    Earlier,
    /// The last claim of this very process, for as long as it was claimed: the others believe the duration that stands there.
    Current,
}

// === impl Claims ===

impl Claims {
    /// Notes that `claim` is tried at `now`, over the lease that `standing` shows.
    pub(super) fn note(&mut self, claim: Claim, now: Moment, standing: Option<&LeaseRecord>) {
        if self.0.len() == CLAIMS {
            // Never the one that stands in the lease: by it the lease is known to be this process's.
            let stands = standing.and_then(|record| self.find(record)) == Some(0);
            self.0.remove(usize::from(stands));
        }
        let over = standing.map_or("", LeaseRecord::resource_version).to_owned();
        let uid = standing.map(|record| record.uid().to_owned());
        self.0.push_back(Claimed { claim, tried: now, uid, over: Some(over) });
    }

    /// The place of the claim that stands in `record`, or in a record of which it is a copy.
    fn find(&self, record: &LeaseRecord) -> Option<usize> {
        self.0.iter().rposition(|Claimed { claim, .. }| {
            record.holder() == Some(claim.holder.as_str())
                && record.transitions() == claim.transitions
                && record.acquire_time() == Some(claim.acquire_time.as_str())
        })
    }

    /// Which of these claims, made for `duration`, stands in `record`.
    pub(super) fn hand(&self, record: &LeaseRecord, duration: Duration) -> Option<Hand> {
        let place = self.find(record)?;
        let elsewhere = self.0[place].uid.as_deref().is_some_and(|uid| uid != record.uid());
        let current = place + 1 == self.0.len() && record.duration() >= Some(duration);
        let own = if current { Hand::Current } else { Hand::Earlier };
        Some(if elsewhere { Hand::Copy } else { own })
    }

    /// When the claim that stands in `record` was tried. A created lease has turned out to be that object.
    pub(super) fn recognise(&mut self, record: &LeaseRecord) -> Option<Moment> {
        let place = self.find(record)?;
        let claimed = &mut self.0[place];
        claimed.uid.get_or_insert_with(|| record.uid().to_owned());
        Some(claimed.tried)
    }

    /// Takes in that the API server has refused the last claim, or has carried it out.
    pub(super) fn settle_last(&mut self) {
        if let Some(last) = self.0.back_mut() {
            last.over = None;
        }
    }

    /// Whether a claim without an answer swaps this version of the lease.
    pub(super) fn may_swap(&self, version: &str) -> bool {
        self.0.iter().any(|claimed| claimed.over.as_deref() == Some(version))
    }

    /// When the next one may be tried, if no more than are remembered are to be tried within `time`. The oldest one may be
    /// there because it stands in the lease.
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
