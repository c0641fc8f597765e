//! Lease calls: how long they take, how many fail, and which renewals take the slow path.

use crate::{
    observers::metrics::scrape::{Exporter, measured},
    support::{LEASE, pass, until},
};
use kube_leader_gate::{
    LeaseTiming,
    testing::{ApiServer, Fault, WatchBreak},
};
use std::time::Duration;

fn count(exporter: &Exporter, call: &str) -> f64 {
    exporter.value("leader_election_lease_call_duration_seconds_count", &[("call", call)])
}

#[tokio::test(start_paused = true)]
async fn lease_calls_are_timed_by_kind() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, _) = measured(&server).await;
    let slow = Fault::delay_after(Duration::from_millis(700)).verb("update").resource("leases");
    let _slow = server.inject(slow);
    pass(Duration::from_secs(5)).await;
    assert_eq!(count(&exporter, "acquire"), 1.0);
    assert!(count(&exporter, "read") >= 1.0);
    assert_eq!(count(&exporter, "renew"), 2.0);
    let scrape = exporter.scrape();
    let sum = scrape.value("leader_election_lease_call_duration_seconds_sum", &[("call", "renew")]);
    assert!((1.39..1.5).contains(&sum), "{sum}");
    let bucket = |le| {
        scrape.value("leader_election_lease_call_duration_seconds_bucket", &[("call", "renew"), ("le", le)])
    };
    assert_eq!((bucket("0.5"), bucket("1")), (0.0, 2.0));
    a.stop().await;
    assert_eq!(count(&exporter, "release"), 1.0);
    assert_eq!(exporter.value("leader_election_lease_call_failures_total", &[]), 0.0);
}

#[tokio::test(start_paused = true)]
async fn failing_lease_calls_are_counted_by_kind() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, _) = measured(&server).await;
    let calls = [
        (Fault::forbidden(), "forbidden"),
        (Fault::hang_before(), "timeout"),
        (Fault::drop_before(), "bad answer"),
        (Fault::status(500), "refused"),
    ];
    for (fault, error) in calls {
        let failing = server.inject(fault.verb("update").resource("leases").times(1));
        until(Duration::from_secs(5), error, || failing.hits() == 1).await;
        // A call that hangs fails after its timeout.
        pass(LeaseTiming::fast().call_timeout() + Duration::from_secs(2)).await;
        let labels = [("call", "renew"), ("error", error)];
        assert_eq!(exporter.value("leader_election_lease_call_failures_total", &labels), 1.0);
    }
    assert!(a.candidate().is_leader());
}

/// As in client-go: the leader first tries to update the lease that it knows, and reads the lease only when that has
/// failed.
#[tokio::test(start_paused = true)]
async fn renewal_after_failure_counts_as_slow_path() {
    for fault in [Fault::status(409), Fault::hang_after(), Fault::drop_before()] {
        let exporter = Exporter::install();
        let server = ApiServer::new();
        let (a, _) = measured(&server).await;
        pass(Duration::from_secs(10)).await;
        assert_eq!(exporter.value("leader_election_slowpath_total", &[]), 0.0, "nothing has failed");
        let failing = server.inject(fault.verb("update").resource("leases").times(1));
        until(Duration::from_secs(3), "it fails", || failing.hits() == 1).await;
        pass(Duration::from_secs(10)).await;
        assert_eq!(exporter.value("leader_election_slowpath_total", &[]), 1.0);
        assert!(a.candidate().is_leader());
    }
}

#[tokio::test(start_paused = true)]
async fn read_or_foreign_edit_is_not_slow_path() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, _) = measured(&server).await;
    let reads = count(&exporter, "read");
    assert_eq!(server.break_watches(|_| true, WatchBreak::End), 1);
    until(Duration::from_secs(5), "the watch stands again, and it has read the lease", || {
        count(&exporter, "read") > reads
    })
    .await;
    server
        .edit("outsider", LEASE, |lease| lease["metadata"]["labels"] = serde_json::json!({ "a": "b" }))
        .unwrap();
    pass(Duration::from_secs(10)).await;
    assert_eq!(exporter.value("leader_election_slowpath_total", &[]), 0.0);
    assert!(a.candidate().is_leader());
}
