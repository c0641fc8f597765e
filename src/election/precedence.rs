//! When a live holder is preempted, and who may still be writing then. Pure, as `candidacy`, which asks.

use super::priority::{Priority, is_key};
use crate::{
    leadership::Moment,
    lease::{HANDOVER, HOLDER_KEY, Handover, LeaseRecord},
};
use std::{collections::BTreeMap, time::Duration};

/// The longest pause between two preemptions by one candidate.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// A candidate's precedence over others, and what has come of it.
#[derive(Debug)]
pub(super) struct Precedence {
    priority: Option<Priority>,
    pace: Pace,
    overtaken: Option<Overtaken>,
}

/// A term that was taken from its holder, or was tried to be, before its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overtaken {
    /// Its count of transitions.
    pub(super) term: u64,
    /// When its holder writes no more, whatever it has heard.
    pub(super) until: Moment,
}

/// Keeps candidates that each think that they precede from preempting each other all the time.
#[derive(Debug)]
struct Pace {
    first_pause: Duration,
    /// The last preemption, and the pause after it.
    last: Option<(Moment, Duration)>,
    /// A preemption was tried, and is not known to have happened yet.
    trying: bool,
}

// === impl Precedence ===

impl Precedence {
    pub(super) fn new(priority: Option<Priority>, first_pause: Duration) -> Self {
        Self { priority, pace: Pace { first_pause, last: None, trying: false }, overtaken: None }
    }

    /// From when on the live holder of `record` may be preempted; never, if none.
    pub(super) fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        let priority = self.priority.as_ref()?;
        let key = key_of(record)?;
        // What nobody understands is not touched; what is being handed over is handed over to its end first.
        let settled = record.oddity().is_none() && record.handover().is_none_or(|handover| handover.done);
        (settled && priority.precedes(key)).then(|| self.pace.not_before())
    }

    /// What is wrong with the holder's key, in words for a log.
    pub(super) fn oddity(&self, record: &LeaseRecord) -> Option<&'static str> {
        let odd = self.priority.is_some() && record.holder().is_some() && key_of(record).is_none();
        odd.then_some("the holder's key is no text, or too long; such a holder is not preempted")
    }

    /// Whether there was a preemption not long ago.
    pub(super) fn is_restless(&self, now: Moment) -> bool {
        self.pace.is_restless(now)
    }

    /// The term that this candidate's last claim has overtaken, if it has come to stand in the lease.
    pub(super) fn overtaken(&self) -> Option<Overtaken> {
        self.overtaken
    }

    /// Notes that the lease is about to be taken, and from whom, if that one may still be writing.
    pub(super) fn taking(&mut self, overtaken: Option<Overtaken>, preempting: bool) {
        self.overtaken = overtaken;
        self.pace.trying = preempting;
    }

    /// Takes in a lease that holds this candidate's last claim.
    pub(super) fn observe_own(&mut self, record: &LeaseRecord, at: Moment) {
        if std::mem::take(&mut self.pace.trying) {
            self.pace.note(at);
        }
        if let (Some(overtaken), Some(handover)) = (&mut self.overtaken, record.handover())
            && handover.done
            && handover.from == overtaken.term
        {
            overtaken.until = overtaken.until.min(at);
        }
    }

    /// Nobody who was overtaken is waited for any more: this candidate leads.
    pub(super) fn settle(&mut self) {
        self.overtaken = None;
    }

    /// What a claim of this candidate says beside the spec.
    pub(super) fn annotations(&self, to: u64, now: Moment) -> BTreeMap<&'static str, Option<String>> {
        let handover = self.overtaken.filter(|overtaken| now < overtaken.until);
        let handover = handover.map(|it| Handover { from: it.term, to, done: false }.to_string());
        let mut annotations = BTreeMap::from([(HANDOVER, handover)]);
        // Without a priority it is foreign (rule S12).
        if let Some(priority) = &self.priority {
            annotations.insert(HOLDER_KEY, Some(priority.key().to_owned()));
        }
        annotations
    }

    /// What the claim says that gives the lease up: nothing, as Istio's.
    pub(super) fn no_annotations(&self) -> BTreeMap<&'static str, Option<String>> {
        let key = self.priority.as_ref().map(|_| (HOLDER_KEY, None));
        key.into_iter().chain([(HANDOVER, None)]).collect()
    }
}

// === impl Pace ===

impl Pace {
    fn note(&mut self, at: Moment) {
        let pause = match self.last {
            Some((_, pause)) if self.is_restless(at) => pause.saturating_mul(2),
            _ => self.first_pause,
        };
        self.last = Some((at, pause.min(LONGEST_PAUSE.max(self.first_pause))));
    }

    fn not_before(&self) -> Moment {
        self.last.map_or(Moment::from_nanos(0), |(last, pause)| last.saturating_add(pause))
    }

    /// Of candidates that preempt each other in turn, the slowest finds itself restless each time: its pause is what they
    /// all wait for.
    fn is_restless(&self, now: Moment) -> bool {
        self.last.is_some_and(|(last, pause)| now < last.saturating_add(pause.saturating_mul(2)))
    }
}

/// The key of the holder, empty if it has none; none if it makes no sense.
fn key_of(record: &LeaseRecord) -> Option<&str> {
    match record.annotation(HOLDER_KEY) {
        None => Some(""),
        Some(_) => record.holder_key().filter(|key| key.is_empty() || is_key(key)),
    }
}

#[cfg(test)]
#[path = "precedence_tests.rs"]
mod tests;
