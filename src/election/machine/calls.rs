//! What this candidate asks of the API server, and when it may.

use crate::{
    election::{hooks::LeaseCall, spread::Spread},
    growing_pause::backoff,
    leadership::Moment,
    lease::{LeaseRecord, LeaseUpdate},
};
use std::time::Duration;

/// A lease call, which may take a call timeout (rule S9). A write swaps `seen`, or creates the lease if there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub what: LeaseCall,
    pub seen: Option<LeaseRecord>,
    /// None for a read.
    pub update: Option<LeaseUpdate>,
}

/// The call under way, and the last write.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    pub(super) flight: Option<Flight>,
    /// The version that the last write was to swap. Empty if that write was to create the lease.
    pub(super) over: String,
    /// An acquisition without an answer: the version that it swaps, and until when it may land. Only a read that is sent after this
    /// moment shows that it has not landed.
    pub(super) pending_swap: Option<(String, Moment)>,
    /// The same for an acquisition that creates the lease. It lands whenever there is no lease.
    pub(super) pending_create: Option<Moment>,
}

/// The one call under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) call: Call,
    pub(super) sent: Moment,
    /// The newest version that was known when it was sent.
    pub(super) knew: u64,
    /// What was known when it was sent may have been old.
    pub(super) doubts: bool,
    /// No watch has begun since it was sent. If one has, the lease may have changed after this answer and before the watch.
    pub(super) settles: bool,
}

/// When this candidate may do what it wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// It takes no lease before. News of others end this rest.
    pub(super) rest_until: Moment,
    /// It makes no call before, since calls have failed. News of others end this pause.
    pub(super) pause_until: Moment,
    /// It makes no call before, since the API server has asked it to wait. No news end this wait.
    pub(super) asked_until: Moment,
    /// How many calls in a row have failed, or lost a race.
    pub(super) failures: u32,
    /// It asks no holder for the lease before.
    pub(super) ask_from: Moment,
    pub(super) spread: Spread,
}

// === impl Calls ===

impl Calls {
    pub(super) fn begin(&mut self, call: Call, knew: u64, doubts: bool, now: Moment) {
        if call.update.is_some() {
            let over = call.seen.as_ref().map_or("", LeaseRecord::resource_version);
            over.clone_into(&mut self.over);
        }
        self.flight = Some(Flight { call, sent: now, knew, doubts, settles: true });
    }

    /// Takes in that an acquisition has no answer, and may land until then.
    pub(super) fn note_pending_claim(&mut self, until: Moment) {
        if self.over.is_empty() {
            self.pending_create = Some(until);
        } else {
            self.pending_swap = Some((self.over.clone(), until));
        }
    }

    /// Takes in the answer to a read that was sent at this moment.
    pub(super) fn note_read(&mut self, sent: Moment) {
        self.pending_swap.take_if(|(_, until)| *until <= sent);
        self.pending_create.take_if(|until| *until <= sent);
    }

    /// Whether a write without an answer may still give the lease, of this version, to this candidate. Without a lease it is empty.
    pub(super) fn pending_claim_may_land(&self, version: &str) -> bool {
        let swaps = self.pending_swap.as_ref().is_some_and(|(over, _)| over == version);
        swaps || version.is_empty() && self.pending_create.is_some()
    }
}

// === impl Pace ===

impl Pace {
    /// When a call that is due may begin.
    pub(super) fn allows(&self, due: Moment) -> Moment {
        due.max(self.pause_until).max(self.asked_until)
    }

    /// Takes in that a call has failed: the pauses grow from `first` to `longest`.
    pub(super) fn pause(&mut self, first: Duration, longest: Duration, chance: f64, now: Moment) {
        let pause = backoff(first, self.failures, longest, chance);
        self.failures = self.failures.saturating_add(1);
        self.pause_until = now.saturating_add(pause);
    }

    /// Forgets the failures of calls.
    pub(super) fn begin_anew(&mut self) {
        (self.failures, self.pause_until, self.asked_until) = (0, Moment::default(), Moment::default());
    }
}
