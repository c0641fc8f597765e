//! Counts writes where they pass, in atomics of its own: no exporter stands in their way.
//!
//! With `counter!` for each write, counting would take 2.6 times as long and allocate (`benches/metrics.rs`).

use super::{
    labels::Labels,
    names::{WRITES_CUT_OFF_TOTAL, WRITES_TOTAL},
};
use crate::{
    gate::{ErrLeadershipLost, ErrNotLeader, WriteObserver},
    request::{RequestInfo, Verb},
};
use metrics::{Label, SharedString};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

/// How many resources of one election get series of their own.
pub const MOST_RESOURCES: usize = 64;

/// The longest that Kubernetes lets group and resource be; a subresource has no rule of its own.
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

/// Those that a controller sends: a rate of what has never been counted needs a zero to begin with.
const USUAL: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

/// Writes that have not been carried over to the recorder yet.
#[derive(Debug)]
pub(super) struct Tally {
    /// One for each resource, in the order in which they came.
    resources: [OnceLock<Box<Entry>>; MOST_RESOURCES],
    /// All resources that came later.
    other: Entry,
    /// Requests that address no resource, or one that cannot be told.
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
    /// As the label has it.
    label: Arc<str>,
    admitted: Counts,
    rejected: Counts,
    exempted: Counts,
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

    /// Gives the recorder zeros to begin with.
    pub(super) fn begin(labels: &Labels) {
        for verb in USUAL {
            cut_off(labels, verb).increment(0);
        }
    }

    /// Carries over what has been counted since the last time.
    pub(super) fn publish(&self, labels: &Labels) {
        let entries = self.resources.iter().map_while(OnceLock::get).map(|entry| &**entry);
        for entry in entries.chain([&self.other, &self.none]) {
            for decision in [Decision::Admitted, Decision::Rejected, Decision::Exempted] {
                entry.counts(decision).take(|verb, count| {
                    let labels_of_write = [
                        Label::from_static_parts("decision", decision.as_str()),
                        Label::from_static_parts("verb", verb.as_str()),
                        Label::new("resource", SharedString::from(entry.label.clone())),
                    ];
                    labels.counter(WRITES_TOTAL, labels_of_write).increment(count);
                });
            }
        }
        self.cut_off.take(|verb, count| cut_off(labels, verb).increment(count));
    }

    fn count(&self, decision: Decision, request: &RequestInfo<'_>) {
        let (verb, entry) = match request.on_resource() {
            Some(on_resource) => (on_resource.verb, self.entry(on_resource.target())),
            None => (request.verb(), &self.none),
        };
        entry.counts(decision).add(verb);
    }

    /// The entry of this resource, made if there is room. It never goes away.
    fn entry(&self, target @ (group, resource, subresource): (&str, &str, &str)) -> &Entry {
        if group.len() > LONGEST_GROUP || resource.len().max(subresource.len()) > LONGEST_RESOURCE {
            return &self.other;
        }
        // Few are in use, and most writes are of the first ones: no need to hash.
        let entries = self.resources.iter().map(|entry| {
            // Another thread may have been faster, with another resource: so each is compared, the new one too.
            &**entry.get_or_init(|| Box::new(Entry::new(group, resource, subresource)))
        });
        let mut fitting = entries.filter(|entry| entry.is_of(target));
        fitting.next().unwrap_or(&self.other)
    }
}

fn cut_off(labels: &Labels, verb: Verb) -> metrics::Counter {
    labels.counter(WRITES_CUT_OFF_TOTAL, [Label::from_static_parts("verb", verb.as_str())])
}

impl WriteObserver for Tally {
    fn exempted(&self, request: &RequestInfo<'_>) {
        self.count(Decision::Exempted, request);
    }

    fn admitted(&self, request: &RequestInfo<'_>) {
        self.count(Decision::Admitted, request);
    }

    fn rejected(&self, error: &ErrNotLeader) {
        self.count(Decision::Rejected, &error.request());
    }

    fn cut_off(&self, error: &ErrLeadershipLost) {
        self.cut_off.add(error.verb());
    }
}

// === impl Decision ===

impl Decision {
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
            admitted: Counts::default(),
            rejected: Counts::default(),
            exempted: Counts::default(),
        }
    }

    fn is_of(&self, (group, resource, subresource): (&str, &str, &str)) -> bool {
        *self.resource == *resource && *self.group == *group && *self.subresource == *subresource
    }

    const fn counts(&self, decision: Decision) -> &Counts {
        match decision {
            Decision::Admitted => &self.admitted,
            Decision::Rejected => &self.rejected,
            Decision::Exempted => &self.exempted,
        }
    }
}

// === impl Counts ===

impl Counts {
    fn add(&self, verb: Verb) {
        self.0[verb as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Hands out what has been counted, and forgets it.
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
    fn threads_that_bring_resources_at_once_lose_no_count_and_double_no_entry() {
        let tally = Tally::new();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let tally = &tally;
                scope.spawn(move || {
                    for round in 0..1000 {
                        let resource = format!("r{}", (first + round) % 32);
                        tally.entry(("", &resource, "")).counts(Decision::Admitted).add(Verb::Create);
                    }
                });
            }
        });
        let entries: Vec<_> = tally.resources.iter().map_while(OnceLock::get).collect();
        assert_eq!(entries.len(), 32);
        let mut sum = 0;
        for entry in entries {
            entry.admitted.take(|_, count| sum += count);
        }
        assert_eq!(sum, 4000);
    }
}
