//! Decides whom a candidate may preempt, and how often. It is pure, and `machine` asks it.

use super::{
    handover::{HANDOVER, Handover},
    priority::{Priority, is_key},
};
use crate::{leadership::Moment, lease::LeaseRecord};
use std::{collections::BTreeMap, time::Duration};

/// The annotation with the holder's key. A candidate compares it to decide whether it may take the lease. The name
/// comes from Istio.
pub const HOLDER_KEY: &str = "leader.istio.io/holder-key";

/// The longest pause between two preemptions by one candidate.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// A candidate's precedence over others, and its recent preemptions.
#[derive(Clone, Debug)]
pub struct Precedence {
    priority: Option<Priority>,
    /// The pause after a preemption, if there was none shortly before.
    first_pause: Duration,
    /// The last preemption, and the pause after it. If two candidates each think that they precede the other, the
    /// pause keeps them from preempting each other all the time.
    last: Option<(Moment, Duration)>,
    /// A preemption was tried, and its outcome is not known yet.
    trying: bool,
}

// === impl Precedence ===

impl Precedence {
    pub fn new(priority: Option<Priority>, first_pause: Duration) -> Self {
        Self { priority, first_pause, last: None, trying: false }
    }

    /// When this candidate may preempt the live holder of `record`. None if it may not.
    pub fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        let priority = self.priority.as_ref()?;
        let key = holder_key(record)?;
        // Do not touch a lease that makes no sense. Let a running handover finish first.
        let settled = record.oddity().is_none() && Handover::under_way(record).is_none();
        let rested = self.last.map_or(Moment::from_nanos(0), |(last, pause)| last.saturating_add(pause));
        (settled && priority.precedes(key)).then_some(rested)
    }

    /// What is wrong with the holder's key, in words for the log.
    pub fn oddity(&self, record: &LeaseRecord) -> Option<&'static str> {
        let odd = self.priority.is_some() && record.holder().is_some() && holder_key(record).is_none();
        odd.then_some("the holder's key is not text, or is too long; this holder is never preempted")
    }

    /// Whether there was a preemption not long ago. If candidates preempt each other in turn, this is always true for
    /// the one with the longest pause, so all of them wait for its pause.
    pub(in crate::election) fn preempted_recently(&self, now: Moment) -> bool {
        self.last.is_some_and(|(last, pause)| now < last.saturating_add(pause.saturating_mul(2)))
    }

    /// Records that this candidate is about to take the lease, from a live holder or not.
    pub(in crate::election) fn taking(&mut self, preempting: bool) {
        self.trying = preempting;
    }

    /// Whether the claim that this candidate has made last takes the lease from a live holder.
    pub(in crate::election) fn is_preempting(&self) -> bool {
        self.trying
    }

    /// Takes in a lease that holds this candidate's last claim.
    pub(in crate::election) fn observe_last(&mut self, at: Moment) {
        if std::mem::take(&mut self.trying) {
            let pause = match self.last {
                Some((_, pause)) if self.preempted_recently(at) => pause.saturating_mul(2),
                _ => self.first_pause,
            };
            self.last = Some((at, pause.min(LONGEST_PAUSE.max(self.first_pause))));
        }
    }

    /// The annotations of the claim of term `to`, while it waits for the writes of the term `from`.
    pub(in crate::election) fn annotations(
        &self,
        to: u64,
        from: Option<u64>,
    ) -> BTreeMap<&'static str, Option<String>> {
        let handover = from.map(|from| Handover { from, to, done: false }.to_string());
        let mut annotations = BTreeMap::from([(HANDOVER, handover)]);
        // Without a priority, the key is a foreign field (rule S12).
        if let Some(priority) = &self.priority {
            annotations.insert(HOLDER_KEY, Some(priority.key().to_owned()));
        }
        annotations
    }
}

/// The holder's key; empty if it has none. None if the key makes no sense.
pub fn holder_key(record: &LeaseRecord) -> Option<&str> {
    match record.annotation(HOLDER_KEY) {
        None => Some(""),
        Some(key) => key.as_str().filter(|key| key.is_empty() || is_key(key)),
    }
}
