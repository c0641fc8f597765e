//! The names of the metrics, and their descriptions for the exporter.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Whether this process leads: 1 or 0. Kubernetes' name.
pub const MASTER_STATUS: &str = "leader_election_master_status";

/// Renewals that had to read the lease first, because the renewal before had failed. Kubernetes' name.
pub const SLOWPATH_TOTAL: &str = "leader_election_slowpath_total";

/// How often the lease changed its holder, as this candidate saw it.
pub const TRANSITIONS_TOTAL: &str = "leader_election_transitions_total";

/// Terms of this process that have ended, by their cause (label `loss`).
pub const LOSSES_TOTAL: &str = "leader_election_losses_total";

/// Seconds until this process stops writing without another renewal; 0 for a follower.
pub const TIME_TO_DEADLINE_SECONDS: &str = "leader_election_time_to_deadline_seconds";

/// How many seconds the lease has had no holder, as this candidate sees it; 0 while it has one.
pub const LEADERLESS_SECONDS: &str = "leader_election_leaderless_seconds";

/// How many seconds the lease had no holder, once for each such gap, as this candidate saw it.
pub const LEADERLESS_GAP_SECONDS: &str = "leader_election_leaderless_gap_seconds";

/// The duration of lease calls in seconds, answered or not (label `call`: `read`, `acquire`, `renew`, `release`,
/// `acknowledge`, `join`, `leave`).
pub const LEASE_CALL_DURATION_SECONDS: &str = "leader_election_lease_call_duration_seconds";

/// Lease calls that failed (labels `call`, `error`).
pub const LEASE_CALL_FAILURES_TOTAL: &str = "leader_election_lease_call_failures_total";

/// Writes at the gate (labels `decision`: `admitted`, `rejected`, `exempted`; `verb`; `resource`).
pub const WRITES_TOTAL: &str = "leader_gate_writes_total";

/// Admitted writes that were cut off. Their outcome is unknown (label `verb`).
pub const WRITES_CUT_OFF_TOTAL: &str = "leader_gate_writes_cut_off_total";

/// Admitted writes that the API server's fence refused. Nothing was changed (label `verb`).
pub const WRITES_FENCED_TOTAL: &str = "leader_gate_writes_fenced_total";

/// Admitted writes that have not finished.
pub const WRITES_UNDER_WAY: &str = "leader_gate_writes_under_way";

/// The buckets of the histograms, in seconds.
pub const BUCKETS: &[(&str, &[f64])] = &[
    (
        LEASE_CALL_DURATION_SECONDS,
        &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
    ),
    (LEADERLESS_GAP_SECONDS, &[0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 150.0, 300.0, 600.0]),
];

/// Registers the units and descriptions of all metrics with the recorder. An election with metrics calls it when it
/// begins.
pub fn describe() {
    describe_gauge!(MASTER_STATUS, Unit::Count, "Whether this process leads: 1 or 0.");
    describe_counter!(
        SLOWPATH_TOTAL,
        Unit::Count,
        "Renewals that had to read the lease first, because the renewal before had failed."
    );
    describe_counter!(
        TRANSITIONS_TOTAL,
        Unit::Count,
        "How often the lease changed its holder, as this candidate saw it."
    );
    describe_counter!(LOSSES_TOTAL, Unit::Count, "Terms of this process that have ended, by their cause.");
    describe_gauge!(
        TIME_TO_DEADLINE_SECONDS,
        Unit::Seconds,
        "Time until this process stops writing without another renewal; 0 for a follower."
    );
    describe_gauge!(
        LEADERLESS_SECONDS,
        Unit::Seconds,
        "How long the lease has had no holder, as this candidate sees it; 0 while it has one."
    );
    describe_histogram!(
        LEADERLESS_GAP_SECONDS,
        Unit::Seconds,
        "How long the lease had no holder, once for each such gap, as this candidate saw it."
    );
    describe_histogram!(
        LEASE_CALL_DURATION_SECONDS,
        Unit::Seconds,
        "The duration of lease calls, answered or not."
    );
    describe_counter!(LEASE_CALL_FAILURES_TOTAL, Unit::Count, "Lease calls that failed.");
    describe_counter!(WRITES_TOTAL, Unit::Count, "Writes at the gate, by its decision.");
    describe_counter!(
        WRITES_CUT_OFF_TOTAL,
        Unit::Count,
        "Admitted writes that were cut off. Their outcome is unknown."
    );
    describe_counter!(
        WRITES_FENCED_TOTAL,
        Unit::Count,
        "Admitted writes that the API server's fence refused. Nothing was changed."
    );
    describe_gauge!(WRITES_UNDER_WAY, Unit::Count, "Admitted writes that have not finished.");
}
