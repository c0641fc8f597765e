//! Whom a candidate preempts, how often, and for whose writes it waits. Pure, as `candidacy`, which asks.

use super::{
    pace::Pace,
    priority::{Priority, is_key},
};
use crate::{
    leadership::Moment,
    lease::{HANDOVER, HOLDER_KEY, Handover, LeaseRecord},
};
use std::{collections::BTreeMap, time::Duration};

/// A candidate's precedence over others, and what has come of it.
#[derive(Debug)]
pub(in crate::election) struct Precedence {
    priority: Option<Priority>,
    pace: Pace,
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
        Self { priority, pace: Pace::new(first_pause), overtaken: None }
    }

    /// From when on the live holder of `record` may be preempted; never, if none.
    pub(in crate::election) fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        let priority = self.priority.as_ref()?;
        let key = key_of(record)?;
        // What nobody understands is not touched; what is being handed over is handed over to its end first.
        let settled = record.oddity().is_none() && record.handover().is_none_or(|handover| handover.done);
        (settled && priority.precedes(key)).then(|| self.pace.not_before())
    }

    /// What is wrong with the holder's key, in words for a log.
    pub(in crate::election) fn oddity(&self, record: &LeaseRecord) -> Option<&'static str> {
        let odd = self.priority.is_some() && record.holder().is_some() && key_of(record).is_none();
        odd.then_some("the holder's key is no text, or too long; such a holder is not preempted")
    }

    /// Whether there was a preemption not long ago.
    pub(in crate::election) fn is_restless(&self, now: Moment) -> bool {
        self.pace.is_restless(now)
    }

    /// The term that this candidate's last claim has overtaken, if it has come to stand in the lease.
    pub(in crate::election) fn overtaken(&self) -> Option<Overtaken> {
        self.overtaken
    }

    /// Notes that the lease is about to be taken, and from whom, if that one may still be writing.
    pub(in crate::election) fn taking(&mut self, overtaken: Option<Overtaken>, preempting: bool) {
        self.overtaken = overtaken;
        self.pace.try_one(preempting);
    }

    /// Takes in a lease that holds this candidate's last claim.
    pub(in crate::election) fn observe_own(&mut self, record: &LeaseRecord, at: Moment) {
        self.pace.settle(at);
        if let (Some(overtaken), Some(handover)) = (&mut self.overtaken, record.handover())
            && handover.done
            && handover.from == overtaken.term
        {
            overtaken.until = overtaken.until.min(at);
        }
    }

    /// Nobody who was overtaken is waited for any more: this candidate leads.
    pub(in crate::election) fn settle(&mut self) {
        self.overtaken = None;
    }

    /// What a claim of this candidate says beside the spec.
    pub(in crate::election) fn annotations(
        &self,
        to: u64,
        now: Moment,
    ) -> BTreeMap<&'static str, Option<String>> {
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
    pub(in crate::election) fn no_annotations(&self) -> BTreeMap<&'static str, Option<String>> {
        let key = self.priority.as_ref().map(|_| (HOLDER_KEY, None));
        key.into_iter().chain([(HANDOVER, None)]).collect()
    }
}

/// The key of the holder, empty if it has none; none if it makes no sense.
fn key_of(record: &LeaseRecord) -> Option<&str> {
    match record.annotation(HOLDER_KEY) {
        None => Some(""),
        Some(_) => record.holder_key().filter(|key| key.is_empty() || is_key(key)),
    }
}
