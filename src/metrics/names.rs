//! The names of the metrics, their descriptions for the exporter, and the labels that every metric has.

use metrics::{
    Counter, Gauge, Histogram, Label, SharedString, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Makes a constant of each metric, and what describes all of them.
macro_rules! names {
    ($($describe:ident $metric:ident = $name:literal, $unit:ident, $about:literal;)*) => {
        $(pub(super) const $metric: &str = $name;)*

        /// Registers the units and descriptions of all metrics with the recorder. An election with metrics calls it when
        /// it begins.
        pub fn describe() {
            $($describe!($metric, Unit::$unit, $about);)*
        }
    };
}

names! {
    describe_gauge MASTER_STATUS = "leader_election_master_status", Count,
        "Whether this process leads: 1 or 0.";
    describe_gauge OPENING = "leader_election_opening", Count,
        "Whether this process holds the lease, and its gate waits for what open_when names: 1 or 0.";
    describe_gauge CONTENDING = "leader_election_contending", Count,
        "Whether this candidate takes the lease if it is free: 0 while its own check says no, and while it stays away.";
    describe_counter SLOWPATH_TOTAL = "leader_election_slowpath_total", Count,
        "Renewals that followed a failed one.";
    describe_counter TRANSITIONS_TOTAL = "leader_election_transitions_total", Count,
        "How often the lease changed its holder, as this candidate saw it.";
    describe_counter LOSSES_TOTAL = "leader_election_losses_total", Count,
        "Terms of this process that have ended, by their cause.";
    describe_gauge TIME_TO_DEADLINE_SECONDS = "leader_election_time_to_deadline_seconds", Seconds,
        "Time until this process stops writing without another renewal; 0 for a follower.";
    describe_gauge LEADERLESS_SECONDS = "leader_election_leaderless_seconds", Seconds,
        "How long the lease has had no holder, as this candidate sees it; 0 while it has one.";
    describe_histogram LEADERLESS_GAP_SECONDS = "leader_election_leaderless_gap_seconds", Seconds,
        "How long the lease had no holder, once for each such gap, as this candidate saw it.";
    describe_histogram LEASE_CALL_DURATION_SECONDS = "leader_election_lease_call_duration_seconds", Seconds,
        "The duration of lease calls, answered or not.";
    describe_counter LEASE_CALL_FAILURES_TOTAL = "leader_election_lease_call_failures_total", Count,
        "Lease calls that failed.";
    describe_counter WRITES_TOTAL = "leader_gate_writes_total", Count,
        "Writes at the gate, by its decision.";
    describe_counter WRITES_CUT_OFF_TOTAL = "leader_gate_writes_cut_off_total", Count,
        "Admitted writes that were cut off. Their outcome is unknown.";
    describe_gauge WRITES_UNDER_WAY = "leader_gate_writes_under_way", Count,
        "Admitted writes that have not finished.";
}

/// The buckets of the histograms, in seconds.
pub const BUCKETS: &[(&str, &[f64])] = &[
    (
        LEASE_CALL_DURATION_SECONDS,
        &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
    ),
    (LEADERLESS_GAP_SECONDS, &[0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 150.0, 300.0, 600.0]),
];

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
