//! What one candidate knows of the others, and what it has drawn.

use super::{pace::Pace, size::Size, standbys::Standbys};
use crate::{
    election::preemption::Precedence,
    leadership::Moment,
    lease::{Identity, LeaseRecord, LeaseTiming},
};
use std::time::Duration;

/// After so many pauses of the lease timing, a place that is still free shows that no candidate is without one.
const LONG: u32 = 16;

/// How often the time before the next attempt to join doubles at most. It is then hours.
const DOUBLINGS: u32 = 14;

/// The others, as one candidate sees them.
#[derive(Clone, Debug)]
pub(in crate::election) struct Crowd {
    timing: LeaseTiming,
    list: Standbys,
    size: Size,
    /// How long a call takes. It grows at once, and shrinks slowly.
    round_trip: Duration,
    /// Since when the lease has been there without a holder.
    free_since: Option<Moment>,
    /// Even in 0..1: how long this candidate waits by chance for the lease. Drawn anew with each news of a holder.
    draw: f64,
    /// This candidate has begun with a lease without a holder, or without a lease.
    begins: bool,
    room: Option<Room>,
    /// How often this candidate has tried to join since its name last stayed for a lease duration.
    tries: u32,
    /// When it last tried.
    tried: Moment,
}

/// A place in the list is free.
#[derive(Clone, Copy, Debug)]
struct Room {
    since: Moment,
    /// Even in 0..1: how long this candidate waits for the place.
    draw: f64,
    /// Whether the candidate that takes it tells how many wait for it.
    tells: bool,
}

// === impl Crowd ===

impl Crowd {
    pub(in crate::election) fn new(timing: LeaseTiming) -> Self {
        Self {
            timing,
            list: Standbys::default(),
            size: Size::default(),
            round_trip: Duration::ZERO,
            free_since: None,
            draw: fastrand::f64(),
            begins: true,
            room: None,
            tries: 0,
            tried: Moment::from_nanos(0),
        }
    }

    // --- news ---

    /// Takes in that a call was answered after this time.
    pub(in crate::election) fn answered(&mut self, after: Duration) {
        self.round_trip = after.max(self.round_trip.saturating_add(after) / 2);
    }

    /// Takes in the lease, as seen at `at`.
    pub(in crate::election) fn observe(
        &mut self,
        record: &LeaseRecord,
        identity: &Identity,
        precedence: &Precedence,
        at: Moment,
    ) {
        let list = Standbys::of(record);
        let held = record.holder().is_some();
        self.count(&list, at);
        if self.stands_by(identity) && at.saturating_since(self.tried) >= self.timing.lease_duration() {
            self.tries = 0;
        }
        let has_room = held && (!list.is_full() || list.with(identity, precedence).is_some());
        if !has_room {
            self.room = None;
        } else if self.room.is_none() {
            self.room = Some(Room { since: at, draw: fastrand::f64(), tells: !self.begins });
        }
        if held {
            self.free_since = None;
            self.draw = fastrand::f64();
            self.begins = false;
        } else {
            self.free_since.get_or_insert(at);
        }
        self.list = list;
    }

    /// Learns how many candidates there are: from the next list, before it is taken in at `at`.
    fn count(&mut self, list: &Standbys, at: Moment) {
        if list.is_full() {
            self.size.all_places_are_taken();
        }
        let Some(room) = &mut self.room else { return };
        let waited = at.saturating_since(room.since);
        if list.len() > self.list.len() {
            if std::mem::take(&mut room.tells) {
                let guess = self.pace().joined_after(waited);
                self.size.learn(guess);
            }
        } else if *list == self.list && waited > self.timing.pause().saturating_mul(LONG) {
            self.size.a_place_stays_free();
        }
    }

    /// Takes in that this candidate tries to join at `now`. If its name is not there afterwards, it waits longer.
    pub(in crate::election) fn tries_to_join(&mut self, now: Moment) {
        self.tries = self.tries.saturating_add(1);
        self.tried = now;
        if let Some(room) = &mut self.room {
            *room = Room { since: now, draw: fastrand::f64(), tells: false };
        }
    }

    // --- what follows ---

    /// The list in the lease, as last seen. It outlives the lease.
    pub(in crate::election) fn standbys(&self) -> &Standbys {
        &self.list
    }

    /// Since when the lease has been there without a holder.
    pub(in crate::election) fn free_since(&self) -> Option<Moment> {
        self.free_since
    }

    /// Whether so many candidates stand in the lease before this one that it need not look at the lease while the
    /// holder is silent.
    pub(in crate::election) fn is_far_back(&self, identity: &Identity) -> bool {
        self.list.is_full() && !self.stands_by(identity)
    }

    /// Whether this candidate stands in the lease.
    pub(in crate::election) fn stands_by(&self, identity: &Identity) -> bool {
        self.list.place(identity.as_str()).is_some()
    }

    /// How long this candidate leaves a free lease to others.
    pub(in crate::election) fn wait(&self, identity: &Identity, precedence: &Precedence) -> Duration {
        let pace = self.pace();
        let (ahead, stands_by) = self.list.before(identity.as_str(), precedence);
        let for_others = pace.slot().saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX));
        let by_chance = match (stands_by, self.begins) {
            (true, _) => Duration::ZERO,
            (false, true) => pace.at_the_start(self.draw).max(pace.by_chance(self.draw)),
            (false, false) => pace.by_chance(self.draw),
        };
        for_others.saturating_add(by_chance)
    }

    /// The standbys that remain when this candidate takes a lease that has been free for this time: without itself,
    /// and without those before it, whose time has passed.
    pub(in crate::election) fn remaining(&self, identity: &Identity, free_for: Duration) -> Standbys {
        let slots = free_for.as_nanos() / self.pace().slot().as_nanos().max(1);
        let place = self.list.place(identity.as_str()).unwrap_or(self.list.len());
        self.list.after(place.min(usize::try_from(slots).unwrap_or(usize::MAX))).without(identity.as_str())
    }

    /// When this candidate may ask for a place in the list. None if no place is free.
    pub(in crate::election) fn joins_from(&self) -> Option<Moment> {
        let room = self.room.as_ref()?;
        let wait = self.pace().before_joining(room.draw).saturating_mul(1 << self.tries.min(DOUBLINGS));
        Some(room.since.saturating_add(wait))
    }

    fn pace(&self) -> Pace {
        Pace { round_trip: self.round_trip, pause: self.timing.pause(), crowd: self.size.most() }
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
