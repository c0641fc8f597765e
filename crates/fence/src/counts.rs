//! Counts the writes that the fence refuses.

use kube_leader_gate::{lease::LeaseName, request::Verb};

/// The counter of admitted writes that the API server's fence refused. Nothing was changed. Labels: `name` and
/// `lease_namespace` of the lease, `verb`.
#[cfg(feature = "metrics")]
pub const WRITES_FENCED_TOTAL: &str = "leader_gate_writes_fenced_total";

/// Passes each count to the recorder of the `metrics` facade. Without the feature `metrics`, it counts nothing.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    #[cfg(feature = "metrics")]
    lease: LeaseName,
}

#[cfg(feature = "metrics")]
impl Counts {
    /// The usual verbs start at zero, so that the first count is an increase.
    pub(crate) fn of(lease: &LeaseName) -> Self {
        let about = "Admitted writes that the API server's fence refused. Nothing was changed.";
        metrics::describe_counter!(WRITES_FENCED_TOTAL, metrics::Unit::Count, about);
        let counts = Self { lease: lease.clone() };
        for verb in [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::Connect] {
            counts.increment(verb, 0);
        }
        counts
    }

    pub(crate) fn add(&self, verb: Verb) {
        self.increment(verb, 1);
    }

    fn increment(&self, verb: Verb, by: u64) {
        let (namespace, name) = (self.lease.namespace().to_owned(), self.lease.name().to_owned());
        let labels = [("lease_namespace", namespace), ("name", name), ("verb", verb.as_str().to_owned())];
        metrics::counter!(WRITES_FENCED_TOTAL, &labels).increment(by);
    }
}

#[cfg(not(feature = "metrics"))]
#[expect(clippy::unused_self, reason = "the other one needs it")]
impl Counts {
    pub(crate) const fn of(_: &LeaseName) -> Self {
        Self {}
    }

    pub(crate) const fn add(&self, _: Verb) {}
}
