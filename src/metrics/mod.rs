//! Metrics of an election and its gates, through the `metrics` facade: the program chooses the exporter.
//!
//! ```no_run
//! use kube_leader_gate::{Election, kube_client::Config, metrics::BUCKETS};
//! use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut exporter = PrometheusBuilder::new();
//! for &(name, buckets) in BUCKETS {
//!     exporter = exporter.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)?;
//! }
//! let metrics = exporter.install_recorder()?; // before or after the election is built
//!
//! let config = Config::infer().await?;
//! let election = Election::builder("my-namespace", "my-controller").metrics().build(&config)?;
//! println!("{}", metrics.render()); // what your web server answers a scrape with
//! # Ok(())
//! # }
//! ```
//!
//! [`ElectionBuilder::metrics`] turns them on, for one election and all its gates. The [guide](crate::guide::metrics)
//! explains each metric, the alerts and the dashboard.
//!
//! 1. Every metric has the labels `name` and `lease_namespace` of the lease. `name` is Kubernetes' own label. The
//!    second label is not called `namespace`, since Prometheus adds a label of that name for the pod.
//! 2. The gate counts a write when it decides about it, with [`counter!`](::metrics::counter). So a write takes as much
//!    longer as the exporter needs for one count: about 0.6 µs with `metrics-exporter-prometheus`. An exporter
//!    that blocks holds up the writes, and one that panics costs only the count. The gate does not count reads, so
//!    they cost nothing.
//! 3. Any client may send any path, so the number of resources must be limited. At most 64 resources
//!    get their own series. The others share the series of the resource `other`.
//! 4. You can install the recorder before or after building the election. While there is no recorder, counts are lost,
//!    as with all users of the facade. The election calls [`describe`] when it begins. If you install a recorder
//!    later, call it again.
//! 5. Two elections on one lease in one process would write to the same gauges. Give each its own lease.
//!
//! Give the [`BUCKETS`] of the histograms to an exporter for Prometheus, as above. Otherwise it makes summaries.

mod names;
mod observer;
mod writes;

pub use self::names::{BUCKETS, describe};

use self::{names::Labels, observer::Calls, writes::Writes};
use crate::election::ElectionBuilder;
use std::sync::Arc;

impl ElectionBuilder {
    /// Turns [metrics](crate::metrics) on, for this election and all its gates.
    pub fn metrics(mut self) -> Self {
        if self.hooks.lease.is_some() {
            return self; // already on
        }
        let labels = Labels::new(&self.namespace, &self.name);
        let calls = Arc::new(Calls::new(labels.clone()));
        self.hooks.lease = Some(calls.clone());
        self.write_observer(Arc::new(Writes::new(labels.clone())))
            .attend(|candidate, stopped| observer::attend(labels, calls, candidate, stopped))
    }
}
