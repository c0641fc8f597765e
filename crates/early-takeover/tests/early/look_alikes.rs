//! What looks like the end of the holder's process and proves nothing: the successor waits for the end of the lease.

use crate::pods::{after_renewal, create, leader_and_follower, path, report, report_end, terminated};
use crate::support::{LEASE, SETTLE, SOON, pass, spec, until, within};
use kube_leader_gate::testing::{ApiServer, Fault};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// No renewal is older than this when a holder ends, and the lease lasts for 15 s.
const AT_LEAST: Duration = Duration::from_secs(15 - 2);

/// The holder dies, and then the pods look like this. The follower waits for the end of the lease.
async fn is_not_succeeded_early(case: &str, look: impl FnOnce(&ApiServer)) {
    let server = ApiServer::new();
    let (a, b) = leader_and_follower(&server).await;
    drop(a);
    let began = Instant::now();
    look(&server);
    within(Duration::from_secs(16), case, b.candidate().elected()).await;
    assert!(began.elapsed() > AT_LEAST, "{case}: taken over after {:?}", began.elapsed());
}

fn none() -> Value {
    json!({})
}

#[tokio::test(start_paused = true)]
async fn s6_deleted_pod_is_no_proof() {
    let gone = |server: &ApiServer| server.delete("kubelet", &path("a")).expect("deleted");
    is_not_succeeded_early("the pod is gone", gone).await;
    is_not_succeeded_early("deleted by force, and last reported as ended", |server| {
        report_end(server, "a");
        gone(server);
    })
    .await;
    is_not_succeeded_early("the deletion waits for a node that does not answer", |server| {
        let marked = |pod: &mut Value| {
            pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        };
        server.edit("user", &path("a"), marked).expect("the pod is there");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn s6_end_before_the_last_renewal_is_no_proof() {
    for seconds in [-3600, -2, 0] {
        is_not_succeeded_early("an earlier end", |server| {
            report(server, "a", 0, &terminated(&after_renewal(server, seconds)), &none());
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn s6_end_of_another_container_is_no_proof() {
    is_not_succeeded_early("the sidecar has ended", |server| {
        report(server, "a", 1, &terminated(&after_renewal(server, 2)), &none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn s6_running_container_is_no_proof() {
    is_not_succeeded_early("it has started again", |server| {
        let running = json!({ "running": { "startedAt": after_renewal(server, 3) } });
        report(server, "a", 0, &running, &terminated(&after_renewal(server, 2)));
    })
    .await;
}

/// As of a `StatefulSet`: its node, and so its clock, is another one.
#[tokio::test(start_paused = true)]
async fn s6_another_pod_of_that_name_is_no_proof() {
    is_not_succeeded_early("it has another uid", |server| {
        server.delete("controller", &path("a")).expect("deleted");
        create(server, "a");
        report_end(server, "a");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn s6_failed_phase_is_no_proof() {
    is_not_succeeded_early("a controller has given it up", |server| {
        server.edit("controller", &path("a"), |pod| pod["status"]["phase"] = "Failed".into()).expect("a pod");
    })
    .await;
    is_not_succeeded_early("the kubelet has lost it", |server| {
        let mut lost = terminated(&after_renewal(server, 2));
        lost["terminated"]["reason"] = "ContainerStatusUnknown".into();
        report(server, "a", 0, &lost, &none());
    })
    .await;
}

/// A renewal of the process that has started again. It has the clock of the same node.
fn renew_again(server: &ApiServer) {
    let renewed = after_renewal(server, 3).replace('Z', ".000000Z");
    server.edit("a", LEASE, |lease| lease["spec"]["renewTime"] = renewed.into()).expect("the lease");
}

/// The status is old: the container has started again, and its process has renewed.
#[tokio::test(start_paused = true)]
async fn s6_restarted_holder_that_renewed_is_not_succeeded() {
    // It renews before its writes have settled, while the follower reads the pod, or writes the lease.
    for (resource, verb) in [("pods", ""), ("pods", "get"), ("leases", "update")] {
        let server = ApiServer::new();
        let (a, b) = leader_and_follower(&server).await;
        drop(a);
        if verb.is_empty() {
            report_end(&server, "a");
            pass(SETTLE / 2).await;
            renew_again(&server);
        } else {
            let delay = Fault::delay_before(SOON).user("b").resource(resource).verb(verb).times(1);
            let slow = server.inject(delay);
            report_end(&server, "a");
            until(SETTLE + SOON, "the call is under way", || slow.hits() > 0).await;
            renew_again(&server);
        }
        for _ in 0..6 {
            pass(Duration::from_secs(2)).await;
            assert_eq!(spec(&server)["holderIdentity"], "a", "{verb} {resource}");
        }
        within(Duration::from_secs(4), "b leads at the expiry", b.candidate().elected()).await;
    }
}
