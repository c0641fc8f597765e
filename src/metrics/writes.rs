//! Counts each write at the gates, in a bounded number of series.

use super::names::{Labels, WRITES_CUT_OFF_TOTAL, WRITES_TOTAL, outlive};
use crate::{
    gate::{Attempt, ErrLeadershipLost, ErrNotLeader, WriteObserver},
    request::{RequestInfo, Verb},
};
use metrics::{Counter, Label, SharedString};
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// How many resources of one election get series of their own.
const MOST_RESOURCES: usize = 64;

/// Kubernetes' limit for a group and for a resource. A subresource has no limit of its own.
const LONGEST_GROUP: usize = 253;
const LONGEST_RESOURCE: usize = 63;

/// The usual verbs of a controller. They start at zero, so that the first count is an increase. A `connect` lasts long, so
/// a loss often cuts it off.
const USUAL: [Verb; 6] =
    [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection, Verb::Connect];

/// Passes each write to the recorder.
#[derive(Debug)]
pub(super) struct Writes {
    labels: Labels,
    /// The resources that have series of their own. A resource never leaves this set.
    resources: Mutex<HashSet<String>>,
}

// === impl Writes ===

impl Writes {
    pub(super) fn new(labels: Labels) -> Self {
        Self { labels, resources: Mutex::default() }
    }

    /// Starts the counters of writes that were cut off at zero.
    pub(super) fn begin(labels: &Labels) {
        for verb in USUAL {
            cut_off(labels, verb).increment(0);
        }
    }

    fn count(&self, decision: &'static str, attempt: &Attempt<'_>) {
        outlive(|| {
            let (verb, resource) = self.subject(attempt);
            let more = [
                Label::from_static_parts("decision", decision),
                Label::from_static_parts("verb", verb.as_str()),
                Label::new("resource", resource),
            ];
            self.labels.counter(WRITES_TOTAL, more).increment(1);
        });
    }

    /// The values of the labels `verb` and `resource`.
    fn subject(&self, attempt: &Attempt<'_>) -> (Verb, SharedString) {
        let none = SharedString::const_str("none");
        match attempt {
            Attempt::Request(request) => match request.on_resource() {
                Some(on_resource) => (on_resource.verb, self.resource(on_resource.target())),
                None => (request.verb(), none),
            },
            Attempt::Labelled(label) => (Verb::Unknown, self.resource(("", label, ""))),
        }
    }

    /// The resource as errors and the log spell it, or `other` if there is no room for one more.
    fn resource(&self, (group, resource, subresource): (&str, &str, &str)) -> SharedString {
        let other = SharedString::const_str("other");
        if group.len() > LONGEST_GROUP || resource.len().max(subresource.len()) > LONGEST_RESOURCE {
            return other;
        }
        let mut label = resource.to_owned();
        for (separator, part) in [('.', group), ('/', subresource)] {
            if !part.is_empty() {
                label.push(separator);
                label.push_str(part);
            }
        }
        // The set is always complete, even after a panic.
        let mut known = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let has_series =
            known.contains(&label) || (known.len() < MOST_RESOURCES && known.insert(label.clone()));
        if has_series { label.into() } else { other }
    }
}

fn cut_off(labels: &Labels, verb: Verb) -> Counter {
    labels.counter(WRITES_CUT_OFF_TOTAL, [Label::from_static_parts("verb", verb.as_str())])
}

/// The gate calls these in the task of the write, so each outlives a panic of the recorder.
impl WriteObserver for Writes {
    fn exempted(&self, request: &RequestInfo<'_>) {
        self.count("exempted", &Attempt::Request(request.clone()));
    }

    fn admitted(&self, attempt: &Attempt<'_>) {
        self.count("admitted", attempt);
    }

    fn rejected(&self, error: &ErrNotLeader) {
        self.count("rejected", &error.attempt());
    }

    fn cut_off(&self, error: &ErrLeadershipLost) {
        outlive(|| cut_off(&self.labels, error.verb().unwrap_or(Verb::Unknown)).increment(1));
    }
}
