//! Decides what to do about this candidate's `LeaseCandidate` object. It is pure, and the caller passes the time.

use crate::{
    api::backoff,
    record::{CandidateRecord, CandidateSpec},
};
use jiff::Timestamp;
use kube_leader_gate::leadership::Moment;
use serde_json::{Value, json};
use std::time::Duration;

/// How often the object is renewed without a ping, as client-go does. The coordinator pings all candidates if one has
/// not renewed for 15 minutes, and ignores a candidate that has not for 30 minutes.
const RENEWAL: Duration = Duration::from_secs(5 * 60);
/// How often the object is read without a watch. The coordinator waits 5 s for the answer to a ping.
const POLL: Duration = Duration::from_secs(2);
/// How often the object is read although it is watched. A watch may hang.
const LOOK: Duration = Duration::from_secs(30);

/// The pause between two writes. Another program may undo each of them at once.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known about the object.
#[derive(Debug)]
pub(crate) struct Register {
    pub(crate) card: CandidateSpec,
    seen: Seen,
    watching: bool,
    /// The object may differ from what is known.
    in_doubt: bool,
    /// When the object was last written or read.
    wrote: Moment,
    looked: Moment,
    not_before: Moment,
    failures: u32,
}

#[derive(Debug)]
enum Seen {
    Nothing,
    Absent,
    Present(CandidateRecord),
}

/// What to do now.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Read,
    Create(Value),
    Update(Value),
    /// The options of the call.
    Delete(Value),
    /// Do nothing until this moment or until there is news.
    Wait(Moment),
}

// === impl Register ===

impl Register {
    pub(crate) fn new(card: CandidateSpec) -> Self {
        let origin = Moment::from_nanos(0);
        Self {
            card,
            seen: Seen::Nothing,
            watching: false,
            in_doubt: false,
            wrote: origin,
            looked: origin,
            not_before: origin,
            failures: 0,
        }
    }

    /// Decides what to do at `now`. `stands` says whether this candidate may be chosen now. A wait always ends after
    /// `now`.
    pub(crate) fn next(&self, stands: bool, now: Moment, wall_clock: Timestamp) -> Next {
        if now < self.not_before {
            return Next::Wait(self.not_before);
        }
        let look = self.looked.saturating_add(if self.watching { LOOK } else { POLL });
        let again = self.wrote.saturating_add(PAUSE);
        let record = match &self.seen {
            Seen::Nothing | Seen::Absent if !stands && !self.in_doubt => {
                return Next::Wait(now.saturating_add(LOOK));
            }
            Seen::Nothing => return Next::Read,
            _ if self.in_doubt || now >= look => return Next::Read,
            Seen::Absent if now < again => return Next::Wait(again),
            Seen::Absent => return Next::Create(self.card.created(wall_clock)),
            Seen::Present(record) => record,
        };
        if self.card.other_lease(record).is_some() {
            return Next::Wait(look);
        }
        if !stands {
            return Next::Delete(json!({ "preconditions": { "uid": record.uid() } }));
        }
        if !self.is_due(record, now) {
            return Next::Wait(self.wrote.saturating_add(RENEWAL).min(look));
        }
        if now < again {
            return Next::Wait(again);
        }
        Next::Update(self.card.renewed(record, wall_clock))
    }

    /// Whether a renewal is due at `now`.
    fn is_due(&self, record: &CandidateRecord, now: Moment) -> bool {
        record.unanswered_ping().is_some()
            || !self.card.agrees_with(record)
            || now >= self.wrote.saturating_add(RENEWAL)
    }

    /// Whether the object must be written at `now`.
    fn owes_a_write(&self, stands: bool, now: Moment) -> bool {
        match &self.seen {
            Seen::Nothing | Seen::Absent => stands,
            Seen::Present(record) => !stands || self.is_due(record, now),
        }
    }

    /// Whether the coordinator may know this candidate.
    pub(crate) fn is_listed(&self) -> bool {
        matches!(&self.seen, Seen::Present(record) if self.card.other_lease(record).is_none())
            || self.in_doubt
    }

    /// The lease of the object, if another election uses the same name for its own candidate.
    pub(crate) fn other_lease(&self) -> Option<&str> {
        match &self.seen {
            Seen::Present(record) => self.card.other_lease(record),
            Seen::Nothing | Seen::Absent => None,
        }
    }

    /// Whether the last call failed, or each write that came before it and is still needed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Takes in the answer to a read that was sent at `sent`.
    pub(crate) fn read(&mut self, record: Option<CandidateRecord>, stands: bool, sent: Moment) {
        self.seen = record.map_or(Seen::Absent, Seen::Present);
        self.looked = sent;
        self.in_doubt = false;
        // If a write has failed and is still needed, an answer to a read does not help: an API server without the API
        // answers as if the object were missing.
        if !self.owes_a_write(stands, sent) {
            self.failures = 0;
        }
    }

    /// Takes in the answer to a create or an update that was sent at `sent`.
    pub(crate) fn written(&mut self, record: CandidateRecord, sent: Moment) {
        (self.wrote, self.looked) = (sent, sent);
        self.worked();
        self.hear(record);
    }

    /// Takes in that the object is gone.
    pub(crate) fn deleted(&mut self) {
        self.seen = Seen::Absent;
        self.worked();
    }

    /// Takes in news from the watch. Old news changes nothing.
    pub(crate) fn hear(&mut self, record: CandidateRecord) {
        if !matches!(&self.seen, Seen::Present(known) if record.is_older_than(known)) {
            self.seen = Seen::Present(record);
        }
    }

    /// Takes in from the watch that the object was deleted in this state.
    pub(crate) fn hear_deletion(&mut self, last: &CandidateRecord) {
        if !matches!(&self.seen, Seen::Present(known) if last.is_older_than(known)) {
            self.seen = Seen::Absent;
        }
    }

    /// Takes in that the watch has begun or has ended. Either way, news may have been missed.
    pub(crate) fn watches(&mut self, watching: bool) {
        self.watching = watching;
        if watching && !matches!(self.seen, Seen::Nothing) {
            self.in_doubt = true;
        }
    }

    /// Takes in that a call failed. After a conflict, the object is read at once.
    pub(crate) fn failed(&mut self, conflict: bool, first: Duration, longest: Duration, now: Moment) {
        self.in_doubt = true;
        let at_once = conflict && self.failures == 0;
        let pause = if at_once { Duration::ZERO } else { backoff(first, self.failures, longest) };
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(pause);
    }

    fn worked(&mut self) {
        self.in_doubt = false;
        self.failures = 0;
    }
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
