//! What is written into the lease.

use super::{
    note::{self, ASKED, CLAIM, Claim, WAITS_FOR, WaitsFor},
    state::Machine,
    stored::following,
};
use crate::{
    election::{hooks::LeaseCall, priority::HOLDER_KEY},
    leadership::Moment,
    lease::{LONGEST_SANE, LeaseRecord, LeaseUpdate, micro_time},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Map;
use std::{collections::BTreeMap, time::Duration};

impl Machine {
    /// What this call writes. None for a read.
    pub(super) fn update(&self, what: LeaseCall, wall: Timestamp, now: Moment) -> Option<LeaseUpdate> {
        let record = self.seen().map(|seen| &seen.stored.record);
        match what {
            LeaseCall::Acquire => Some(self.acquisition(record, wall, now)),
            LeaseCall::Renew => {
                Some(self.claim(self.process, record, &self.known.possible_writers.rests(now), wall))
            }
            LeaseCall::Release => {
                // The release names the process that has held the lease: this process, or its predecessor.
                let stored = self.seen().and_then(|seen| seen.stored.claim());
                let process = stored.map_or(self.process, |claim| claim.process);
                let mut update = self.claim(process, record, &self.known.possible_writers.rests(now), wall);
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

    /// A claim of the term that the lease shows.
    fn claim(
        &self,
        process: u64,
        over: Option<&LeaseRecord>,
        waits_for: &WaitsFor,
        wall: Timestamp,
    ) -> LeaseUpdate {
        let renewed = later_than(self.known.latest_time, wall);
        let claim = Claim {
            process,
            time: renewed,
            uid: over.map_or("", LeaseRecord::uid).to_owned(),
            lasts: self.timing.lease_duration(),
            pod: self.pod.clone().unwrap_or_default(),
            name: self.me.to_string(),
        };
        let mut annotations = BTreeMap::from([
            (CLAIM, Some(claim.to_string())),
            (WAITS_FOR, Some(note::write_waits_for(waits_for))),
        ]);
        if let Some(priority) = &self.priority {
            annotations.insert(HOLDER_KEY, Some(priority.key().to_owned()));
        }
        // Another elector does not read the list, so this claim has to last as long as all processes in the list may write.
        let longest =
            waits_for.values().copied().max().unwrap_or_default() + Duration::from_nanos(999_999_999);
        let renew_time = micro_time(renewed);
        LeaseUpdate {
            holder: self.me.to_string(),
            duration_seconds: self.timing.lease_seconds().max(longest.as_secs()),
            acquire_time: over.and_then(LeaseRecord::acquire_time).unwrap_or(&renew_time).to_owned(),
            renew_time,
            transitions: over.map_or(0, LeaseRecord::transitions),
            annotations,
            new_metadata: Map::new(),
        }
    }

    /// The claim that begins a term.
    fn acquisition(&self, over: Option<&LeaseRecord>, wall: Timestamp, now: Moment) -> LeaseUpdate {
        let mut waits_for = self.known.possible_writers.rests(now);
        // The holder that this claim replaces goes into the list, because it may still write.
        if let Some(seen) = self.seen().filter(|seen| !seen.own && now < seen.until())
            && let Some(holder) = seen.stored.writer().filter(|_| seen.stored.record.holder().is_some())
        {
            waits_for.insert(holder, seen.longest.min(LONGEST_SANE));
        }
        let mut update = self.claim(self.process, over, &waits_for, wall);
        update.acquire_time.clone_from(&update.renew_time);
        update.transitions = over.map_or(0, |record| following(record.transitions()));
        update.annotations.insert(ASKED, None);
        // The key in the lease belongs to the former holder. A candidate without a priority removes it.
        update.annotations.entry(HOLDER_KEY).or_insert(None);
        update
    }
}

/// The time that a claim writes: the wall clock, or a microsecond more than the `latest` time that was seen in the lease, so each
/// claim has a later time than the one before it. At the end of time it is the wall clock.
fn later_than(latest: Timestamp, wall: Timestamp) -> Timestamp {
    let wall = Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall);
    if wall > latest { wall } else { latest.checked_add(SignedDuration::from_micros(1)).unwrap_or(wall) }
}
