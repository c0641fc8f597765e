//! Counts writes in its own atomics, so that a write never waits for an exporter.
//!
//! With `counter!` for each write, counting would take 2.6 times as long and allocate
//! (`crates/gate-cost/benches/metrics.rs`).

use super::names::{Labels, WRITES_CUT_OFF_TOTAL, WRITES_TOTAL};
use crate::{
    gate::{Attempt, ErrLeadershipLost, ErrNotLeader, WriteObserver},
    request::{RequestInfo, Verb},
};
use metrics::{Label, SharedString};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

/// How many resources of one election get their own series.
const MOST_RESOURCES: usize = 64;

/// Kubernetes' limit for a group and for a resource. A subresource has no limit of its own.
const LONGEST_GROUP: usize = 253;
const LONGEST_RESOURCE: usize = 63;

const VERBS: [Verb; 15] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Connect,
    Verb::Proxy,
    Verb::Head,
    Verb::Options,
    Verb::Post,
    Verb::Put,
    Verb::Unknown,
];

/// The usual verbs of a controller. They start at zero, so that the first count is an increase. A `connect` lasts long, so
/// a loss often cuts it off.
const USUAL: [Verb; 6] =
    [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection, Verb::Connect];

/// Counts of writes that have not been passed to the recorder yet.
#[derive(Debug)]
pub(super) struct Tally {
    /// One for each resource, in the order in which they came.
    resources: [OnceLock<Box<Entry>>; MOST_RESOURCES],
    /// All later resources.
    other: Entry,
    /// Requests that address no resource or an unknown one.
    none: Entry,
    cut_off: Counts,
}

#[derive(Clone, Copy, Debug)]
enum Decision {
    Admitted,
    Rejected,
    Exempted,
}

#[derive(Debug)]
struct Entry {
    group: Box<str>,
    resource: Box<str>,
    subresource: Box<str>,
    /// The value of the label.
    label: Arc<str>,
    /// By decision.
    counts: [Counts; Decision::ALL.len()],
}

/// By verb.
#[derive(Debug, Default)]
struct Counts([AtomicU64; VERBS.len()]);

// === impl Tally ===

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            resources: [const { OnceLock::new() }; MOST_RESOURCES],
            other: Entry::new("", "other", ""),
            none: Entry::new("", "none", ""),
            cut_off: Counts::default(),
        }
    }

    /// Starts all metrics at zero.
    pub(super) fn begin(labels: &Labels) {
        for verb in USUAL {
            by_verb(labels, verb).increment(0);
        }
    }

    /// Passes the new counts to the recorder.
    pub(super) fn publish(&self, labels: &Labels) {
        let entries = self.resources.iter().map_while(OnceLock::get).map(|entry| &**entry);
        for entry in entries.chain([&self.other, &self.none]) {
            for (decision, counts) in Decision::ALL.iter().zip(&entry.counts) {
                counts.take(|verb, count| {
                    let labels_of_write = [
                        Label::from_static_parts("decision", decision.as_str()),
                        Label::from_static_parts("verb", verb.as_str()),
                        Label::new("resource", SharedString::from(entry.label.clone())),
                    ];
                    labels.counter(WRITES_TOTAL, labels_of_write).increment(count);
                });
            }
        }
        self.cut_off.take(|verb, count| by_verb(labels, verb).increment(count));
    }

    fn count(&self, decision: Decision, attempt: &Attempt<'_>) {
        match attempt {
            Attempt::Request(request) => self.count_request(decision, request),
            Attempt::Labelled(label) => {
                self.entry(("", label, "")).counts[decision as usize].add(Verb::Unknown);
            }
            Attempt::Refused(verb) => self.none.counts[decision as usize].add(*verb),
        }
    }

    fn count_request(&self, decision: Decision, request: &RequestInfo<'_>) {
        let (verb, entry) = match request.on_resource() {
            Some(on_resource) => (on_resource.verb, self.entry(on_resource.target())),
            None => (request.verb(), &self.none),
        };
        entry.counts[decision as usize].add(verb);
    }

    /// The entry of this resource. Makes one if there is room. An entry is never removed.
    fn entry(&self, target @ (group, resource, subresource): (&str, &str, &str)) -> &Entry {
        if group.len() > LONGEST_GROUP || resource.len().max(subresource.len()) > LONGEST_RESOURCE {
            return &self.other;
        }
        // There are few entries, and most writes match one of the first. A hash would not be faster.
        let entries = self.resources.iter().map(|entry| {
            // Another thread may have added another resource first, so compare each entry, also the new one.
            &**entry.get_or_init(|| Box::new(Entry::new(group, resource, subresource)))
        });
        let mut fitting = entries.filter(|entry| entry.is_of(target));
        fitting.next().unwrap_or(&self.other)
    }
}

fn by_verb(labels: &Labels, verb: Verb) -> metrics::Counter {
    labels.counter(WRITES_CUT_OFF_TOTAL, [Label::from_static_parts("verb", verb.as_str())])
}

impl WriteObserver for Tally {
    fn exempted(&self, request: &RequestInfo<'_>) {
        self.count_request(Decision::Exempted, request);
    }

    fn admitted(&self, attempt: &Attempt<'_>) {
        self.count(Decision::Admitted, attempt);
    }

    fn rejected(&self, error: &ErrNotLeader) {
        self.count(Decision::Rejected, &error.attempt());
    }

    fn cut_off(&self, error: &ErrLeadershipLost) {
        self.cut_off.add(error.verb().unwrap_or(Verb::Unknown));
    }
}

// === impl Decision ===

impl Decision {
    const ALL: [Self; 3] = [Self::Admitted, Self::Rejected, Self::Exempted];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Rejected => "rejected",
            Self::Exempted => "exempted",
        }
    }
}

// === impl Entry ===

impl Entry {
    fn new(group: &str, resource: &str, subresource: &str) -> Self {
        let mut label = resource.to_owned();
        for (separator, part) in [('.', group), ('/', subresource)] {
            if !part.is_empty() {
                label.push(separator);
                label.push_str(part);
            }
        }
        Self {
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            label: label.into(),
            counts: Default::default(),
        }
    }

    fn is_of(&self, (group, resource, subresource): (&str, &str, &str)) -> bool {
        *self.resource == *resource && *self.group == *group && *self.subresource == *subresource
    }
}

// === impl Counts ===

impl Counts {
    fn add(&self, verb: Verb) {
        self.0[verb as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts and resets them to zero.
    fn take(&self, mut each: impl FnMut(Verb, u64)) {
        for (verb, count) in VERBS.iter().zip(&self.0) {
            let count = count.swap(0, Ordering::Relaxed);
            if count > 0 {
                each(*verb, count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_its_place() {
        for (place, verb) in VERBS.into_iter().enumerate() {
            assert_eq!(verb as usize, place, "{verb}");
        }
        assert_eq!(Verb::Unknown as usize, VERBS.len() - 1, "the last one");
    }

    #[test]
    fn concurrent_new_resources_lose_no_count() {
        let tally = Tally::new();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let tally = &tally;
                scope.spawn(move || {
                    for round in 0..1000 {
                        let resource = format!("r{}", (first + round) % 32);
                        tally.entry(("", &resource, "")).counts[0].add(Verb::Create);
                    }
                });
            }
        });
        let entries: Vec<_> = tally.resources.iter().map_while(OnceLock::get).collect();
        assert_eq!(entries.len(), 32);
        let mut sum = 0;
        for entry in entries {
            entry.counts[0].take(|_, count| sum += count);
        }
        assert_eq!(sum, 4000);
    }
}
