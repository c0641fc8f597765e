//! Metrics of an election and of its gates, through the `metrics` facade: the program chooses the exporter.
//!
//! [`ElectionBuilder::metrics`] switches them on, for one election and for every gate that comes from it. The constants
//! here are their names; `docs/METRICS.md` says what each means, and which alerts and which dashboard go with them.
//!
//! 1. Every metric has the labels `name` and `lease_namespace` of the lease. The first is Kubernetes' own; the second is
//!    not called `namespace`, since a scrape adds that label itself, for the pod.
//! 2. A write costs one atomic addition and, after the first one of its resource, no allocation, whatever the exporter
//!    does: a task of the election carries the counts over once a second, and once more when the election stops. Reads
//!    are not counted, and cost nothing.
//! 3. The resource of a write comes from a path that any client may send, so at most [`MOST_RESOURCES`] of them get
//!    series of their own; the others share one, of the resource `other`.
//! 4. Nothing is kept but what has not been carried over yet. The recorder may be installed before the election is built
//!    or after: what is recorded while there is none is lost, as with all users of the facade.
//!    [`describe`] is called when the election begins; call it again after installing a recorder later than that.
//! 5. Two elections on one lease in one process would write into the same gauges; give each its own lease.
//!
//! An exporter for Prometheus has to be told the [`BUCKETS`] of the histograms, or it makes summaries of them:
//!
//! ```
//! use kube_leader_gate::metrics::BUCKETS;
//! use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
//!
//! # fn main() -> Result<(), metrics_exporter_prometheus::BuildError> {
//! let mut exporter = PrometheusBuilder::new();
//! for &(name, buckets) in BUCKETS {
//!     exporter = exporter.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)?;
//! }
//! let recorder = exporter.build_recorder(); // or .install()
//! # drop(recorder);
//! # Ok(())
//! # }
//! ```

mod attendant;
mod calls;
mod labels;
mod names;
mod tally;

pub use self::{
    names::{
        BUCKETS, LEADERLESS_GAP_SECONDS, LEADERLESS_SECONDS, LEASE_CALL_DURATION_SECONDS,
        LEASE_CALL_FAILURES_TOTAL, LOSSES_TOTAL, MASTER_STATUS, SLOWPATH_TOTAL, TIME_TO_DEADLINE_SECONDS,
        TRANSITIONS_TOTAL, WRITES_CUT_OFF_TOTAL, WRITES_TOTAL, WRITES_UNDER_WAY, describe,
    },
    tally::MOST_RESOURCES,
};

use self::{calls::Calls, labels::Labels, tally::Tally};
use crate::election::ElectionBuilder;
use std::sync::Arc;

impl ElectionBuilder {
    /// Switches [metrics](crate::metrics) on, for this election and for every gate that comes from it.
    ///
    /// ```no_run
    /// use kube_leader_gate::Election;
    ///
    /// # fn example(config: &kube_client::Config) -> Result<(), kube_leader_gate::election::ErrBuild> {
    /// let election = Election::builder("my-namespace", "my-controller").metrics().build(config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(mut self) -> Self {
        if self.hooks.lease.is_some() {
            return self; // on already
        }
        let labels = Labels::new(&self.namespace, &self.name);
        let (tally, calls) = (Arc::new(Tally::new()), Arc::new(Calls::new(labels.clone())));
        self.hooks.writes = Some(tally.clone());
        self.hooks.lease = Some(calls.clone());
        self.attend(|candidate, stopped| attendant::attend(labels, tally, calls, candidate, stopped))
    }
}
