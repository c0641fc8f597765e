//! Whom a candidate preempts, how often, and for whose writes it waits. Pure, as `candidacy`, which asks.

use super::{
    handover::{HANDOVER, Handover},
    priority::{Priority, is_key},
};
use crate::{leadership::Moment, lease::LeaseRecord};
use std::{collections::BTreeMap, time::Duration};

/// The key of the holder, by which candidates of higher precedence know that they may take the lease. Istio's name for it.
pub(in crate::election) const HOLDER_KEY: &str = "leader.istio.io/holder-key";

/// The longest pause between two preemptions by one candidate.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// A candidate's precedence over others, and what has come of it.
#[derive(Debug)]
pub(in crate::election) struct Precedence {
    priority: Option<Priority>,
    /// The pause after a preemption that does not follow another one soon.
    first_pause: Duration,
    /// The last preemption, and the pause after it. It keeps candidates that each think that they precede from preempting
    /// each other all the time.
    last: Option<(Moment, Duration)>,
    /// A preemption was tried, and is not known to have happened yet.
    trying: bool,
    overtaken: Option<Overtaken>,
}

/// A term that was taken from its holder, or was tried to be, before its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) struct Overtaken {
    /// Its count of transitions.
    pub(in crate::election) term: u64,
    /// When its holder writes no more, whatever it has heard.
    pub(in crate::election) until: Moment,
}

// === impl Precedence ===

impl Precedence {
    pub(in crate::election) fn new(priority: Option<Priority>, first_pause: Duration) -> Self {
        Self { priority, first_pause, last: None, trying: false, overtaken: None }
    }

    /// From when on the live holder of `record` may be preempted; never, if none.
    pub(in crate::election) fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        let priority = self.priority.as_ref()?;
        let key = holder_key(record)?;
        // What nobody understands is not touched; what is being handed over is handed over to its end first.
        let settled = record.oddity().is_none() && Handover::under_way(record).is_none();
        let rested = self.last.map_or(Moment::from_nanos(0), |(last, pause)| last.saturating_add(pause));
        (settled && priority.precedes(key)).then_some(rested)
    }

    /// What is wrong with the holder's key, in words for a log.
    pub(in crate::election) fn oddity(&self, record: &LeaseRecord) -> Option<&'static str> {
        let odd = self.priority.is_some() && record.holder().is_some() && holder_key(record).is_none();
        odd.then_some("the holder's key is no text, or too long; such a holder is not preempted")
    }

    /// Whether there was a preemption not long ago. Of candidates that preempt each other in turn, the slowest finds itself
    /// restless each time: its pause is what they all wait for.
    pub(in crate::election) fn is_restless(&self, now: Moment) -> bool {
        self.last.is_some_and(|(last, pause)| now < last.saturating_add(pause.saturating_mul(2)))
    }

    /// The term that this candidate's last claim has overtaken, if it has come to stand in the lease.
    pub(in crate::election) fn overtaken(&self) -> Option<Overtaken> {
        self.overtaken
    }

    /// Notes that the lease is about to be taken, and from whom, if that one may still be writing.
    pub(in crate::election) fn taking(&mut self, overtaken: Option<Overtaken>, preempting: bool) {
        self.overtaken = overtaken;
        self.trying = preempting;
    }

    /// Notes that a claim has come to stand in the lease, and has overtaken this term.
    pub(in crate::election) fn overtakes(&mut self, overtaken: Overtaken) {
        self.overtaken = Some(overtaken);
    }

    /// Takes in a lease that holds this candidate's last claim.
    pub(in crate::election) fn observe_own(&mut self, record: &LeaseRecord, at: Moment) {
        if std::mem::take(&mut self.trying) {
            let pause = match self.last {
                Some((_, pause)) if self.is_restless(at) => pause.saturating_mul(2),
                _ => self.first_pause,
            };
            self.last = Some((at, pause.min(LONGEST_PAUSE.max(self.first_pause))));
        }
        if let (Some(overtaken), Some(handover)) = (&mut self.overtaken, Handover::of(record))
            && handover.done
            && handover.from == overtaken.term
        {
            overtaken.until = overtaken.until.min(at);
        }
    }

    /// This candidate leads: it waits for no holder that was overtaken.
    pub(in crate::election) fn settle(&mut self) {
        self.overtaken = None;
    }

    /// What the claim of the term `to` says beside the spec, while it waits for the writes of an `overtaken` one.
    pub(in crate::election) fn annotations(
        &self,
        to: u64,
        overtaken: Option<Overtaken>,
    ) -> BTreeMap<&'static str, Option<String>> {
        let handover = overtaken.map(|it| Handover { from: it.term, to, done: false }.to_string());
        let mut annotations = BTreeMap::from([(HANDOVER, handover)]);
        // Without a priority it is foreign (rule S12).
        if let Some(priority) = &self.priority {
            annotations.insert(HOLDER_KEY, Some(priority.key().to_owned()));
        }
        annotations
    }
}

/// The key of the holder, empty if it has none; none if it makes no sense.
pub(in crate::election) fn holder_key(record: &LeaseRecord) -> Option<&str> {
    match record.annotation(HOLDER_KEY) {
        None => Some(""),
        Some(key) => key.as_str().filter(|key| key.is_empty() || is_key(key)),
    }
}
