//! The labels that every metric has.

use metrics::{Counter, Gauge, Histogram, Label, SharedString, counter, gauge, histogram};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Which lease a metric is about.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    name: SharedString,
    namespace: SharedString,
}

impl Labels {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        let shared = |text: &str| SharedString::from(Arc::<str>::from(text));
        Self { name: shared(name), namespace: shared(namespace) }
    }

    // Ask for the recorder each time: it may have been installed since, or may have dropped idle series.

    pub(super) fn counter<const N: usize>(&self, metric: &'static str, more: [Label; N]) -> Counter {
        counter!(metric, self.with(more))
    }

    pub(super) fn gauge(&self, metric: &'static str) -> Gauge {
        gauge!(metric, self.with([]))
    }

    pub(super) fn histogram<const N: usize>(&self, metric: &'static str, more: [Label; N]) -> Histogram {
        histogram!(metric, self.with(more))
    }

    fn with<const N: usize>(&self, more: [Label; N]) -> Vec<Label> {
        let lease =
            [Label::new("name", self.name.clone()), Label::new("lease_namespace", self.namespace.clone())];
        lease.into_iter().chain(more).collect()
    }
}

/// Runs `report`, and outlives a panic of the program's recorder: it costs this report, not the term or the process.
pub(super) fn outlive(report: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(report));
}
