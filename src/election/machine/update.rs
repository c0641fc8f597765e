//! What is written into the lease.

use super::{
    note::{self, ASKED, CLAIM, Claim, Rests, WAITS_FOR},
    state::Machine,
};
use crate::{
    election::{hooks::LeaseCall, priority::HOLDER_KEY},
    leadership::Moment,
    lease::{LONGEST_SANE, LeaseRecord, LeaseUpdate, micro_time},
};
use jiff::{SignedDuration, Timestamp};
use std::{collections::BTreeMap, time::Duration};

impl Machine {
    /// What this call writes. None for a read.
    pub(super) fn update(&self, what: LeaseCall, wall: Timestamp, now: Moment) -> Option<LeaseUpdate> {
        let record = self.seen().map(|seen| &seen.stored.record);
        match what {
            LeaseCall::Acquire => Some(self.acquisition(record, wall, now)),
            LeaseCall::Renew => Some(self.claim(self.process, record, &self.formers.rests(now), wall)),
            LeaseCall::Release => {
                // It is the word of the process that is released: this one, or its predecessor.
                let stored = self.seen().and_then(|seen| seen.stored.claim());
                let process = stored.map_or(self.process, |claim| claim.process);
                let mut update = self.claim(process, record, &self.formers.rests(now), wall);
                (update.holder, update.duration_seconds) = (String::new(), 1);
                update.acquire_time.clone_from(&update.renew_time);
                if self.priority.is_some() {
                    update.annotations.insert(HOLDER_KEY, None); // as Istio does
                }
                Some(update)
            }
            LeaseCall::Ask => self.seen()?.stored.asked(&self.own_question()?),
            LeaseCall::Read => None,
        }
    }

    /// The claim of the term that the lease shows.
    fn claim(&self, process: u64, over: Option<&LeaseRecord>, rests: &Rests, wall: Timestamp) -> LeaseUpdate {
        let renewed = later_than(self.stamp, wall);
        let claim = Claim {
            process,
            time: renewed,
            uid: over.map_or("", LeaseRecord::uid).to_owned(),
            lasts: self.timing.lease_duration(),
            pod: self.pod.clone().unwrap_or_default(),
            name: self.me.to_string(),
        };
        let mut annotations =
            BTreeMap::from([(CLAIM, Some(claim.to_string())), (WAITS_FOR, Some(note::write_rests(rests)))]);
        if let Some(priority) = &self.priority {
            annotations.insert(HOLDER_KEY, Some(priority.key().to_owned()));
        }
        // Another elector reads no list, so it has to wait as long for this holder.
        let longest = rests.values().copied().max().unwrap_or_default() + Duration::from_nanos(999_999_999);
        let renew_time = micro_time(renewed);
        LeaseUpdate {
            holder: self.me.to_string(),
            duration_seconds: self.timing.lease_seconds().max(longest.as_secs()),
            acquire_time: over.and_then(LeaseRecord::acquire_time).unwrap_or(&renew_time).to_owned(),
            renew_time,
            transitions: over.map_or(0, LeaseRecord::transitions),
            annotations,
        }
    }

    /// The claim that begins a term. Its duration is at least as long as its gate waits.
    fn acquisition(&self, over: Option<&LeaseRecord>, wall: Timestamp, now: Moment) -> LeaseUpdate {
        let mut rests = self.formers.rests(now);
        // The holder that this claim replaces. It goes into the list, because it may still write.
        if let Some(seen) = self.seen().filter(|seen| !seen.own && now < seen.until())
            && let Some(holder) = seen.stored.writer().filter(|_| seen.stored.record.holder().is_some())
        {
            rests.insert(holder, seen.longest.min(LONGEST_SANE));
        }
        let mut update = self.claim(self.process, over, &rests, wall);
        update.acquire_time.clone_from(&update.renew_time);
        update.transitions = over.map_or(0, |it| following(it.transitions()));
        update.annotations.insert(ASKED, None);
        // A key in the lease belongs to the former holder. Without a priority it is removed with it.
        update.annotations.entry(HOLDER_KEY).or_insert(None);
        update
    }
}

/// The count after `transitions`. The API stores an `int32`, so the count starts again after its maximum.
pub(super) fn following(transitions: u64) -> u64 {
    const MOST: u64 = i32::MAX as u64;
    if transitions >= MOST { 0 } else { transitions + 1 }
}

/// Times in the lease only grow along its chain of claims: the wall clock, or a microsecond more than the latest time that
/// was seen. At the end of time it is the wall clock.
fn later_than(stamp: Timestamp, wall: Timestamp) -> Timestamp {
    let wall = Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall);
    if wall > stamp { wall } else { stamp.checked_add(SignedDuration::from_micros(1)).unwrap_or(wall) }
}
