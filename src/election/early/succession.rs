//! What a candidate knows about the end of the holder's process, and how long its gate then waits.

use super::{
    holder_pod::{HOLDER_POD, HolderPod},
    settings::EarlyTakeover,
};
use crate::{defect, leadership::Moment, lease::LeaseRecord};
use std::time::Duration;

/// The process that wrote this version of a lease has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::election) struct Ended {
    uid: String,
    version: String,
}

/// Early takeover, as one candidate decides on it. By default it never happens.
#[derive(Clone, Debug, Default)]
pub(in crate::election) struct Succession {
    own: Option<HolderPod>,
    settle: Duration,
    ended: Option<Ended>,
}

// === impl Ended ===

impl Ended {
    pub(super) fn of(record: &LeaseRecord) -> Self {
        Self { uid: record.uid().to_owned(), version: record.resource_version().to_owned() }
    }

    pub(super) fn is_of(&self, record: &LeaseRecord) -> bool {
        self.uid == record.uid() && self.version == record.resource_version()
    }
}

// === impl Succession ===

impl Succession {
    pub(in crate::election) fn new(early: Option<&EarlyTakeover>) -> Self {
        early.map_or_else(Self::default, |early| Self {
            own: Some(early.own.clone()),
            settle: early.settle,
            ended: None,
        })
    }

    /// Early takeover with this time to settle.
    #[cfg(test)]
    pub(in crate::election) fn settling(settle: Duration) -> Self {
        Self { settle, ..Self::default() }
    }

    /// The same settings in a process that begins.
    #[cfg(test)]
    pub(in crate::election) fn anew(&self) -> Self {
        Self { ended: None, ..self.clone() }
    }

    /// Takes in that the process which wrote `record` has ended.
    #[cfg(test)]
    pub(in crate::election) fn its_writer_has_ended(&mut self, record: &LeaseRecord) {
        self.ended(Ended::of(record));
    }

    /// Takes in that the process which wrote this version of the lease has ended.
    pub(in crate::election) fn ended(&mut self, ended: Ended) {
        self.ended = Some(ended);
    }

    /// Whether the process that wrote `record` has ended. Of a later version this says nothing: the holder may have
    /// started again and renewed.
    pub(in crate::election) fn has_ended(&self, record: &LeaseRecord) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.is_of(record))
    }

    /// Until when writes of the holder of `record` may still take effect, if a candidate takes the lease at `now`.
    /// `until` is the end of the holder's time.
    pub(in crate::election) fn settles(&self, record: &LeaseRecord, until: Moment, now: Moment) -> Moment {
        let at_once = defect::is_back("early-takeover-opens-at-once");
        let settled = if at_once { now } else { now.saturating_add(self.settle) };
        if self.has_ended(record) { until.min(settled) } else { until }
    }

    /// The annotation of a claim: in which pod this candidate runs.
    pub(in crate::election) fn annotation(
        &self,
        holder: &str,
        term: u64,
    ) -> Option<(&'static str, Option<String>)> {
        self.own.as_ref().map(|pod| (HOLDER_POD, Some(pod.annotation(holder, term))))
    }
}
