//! How soon a candidate tries, how often it asks, and how a standby leaves.

use crate::support::{
    FIRST, LEASE, SOON, candidate, free, leading, lease_writes, pass, releases, spec, until, within,
};
use kube_leader_gate::{
    election::{LeaseEnd, Running},
    testing::{ApiServer, Fault},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::yield_now;

/// Long enough for a follower to stand in the lease.
const JOINS: Duration = Duration::from_millis(2_500);

fn standbys(server: &ApiServer) -> Value {
    let lease = server.object(LEASE).expect("the lease");
    let text =
        lease["metadata"]["annotations"]["kube-leader-gate/standbys"].as_str().unwrap_or("[]").to_owned();
    serde_json::from_str(&text).expect("what a candidate writes is JSON")
}

/// A leader `a`, and `b`, which stands by.
async fn leader_and_standby(server: &ApiServer) -> (Running, Running) {
    let (a, _) = leading(server, "a").await;
    let b = candidate(server, "b").start();
    until(JOINS, "b stands by", || standbys(server) == json!(["b"])).await;
    (a, b)
}

/// It goes first by agreement. Only others spread their attempts.
#[tokio::test(start_paused = true)]
async fn first_standby_takes_a_released_lease_without_a_pause() {
    let server = ApiServer::new();
    let (a, b) = leader_and_standby(&server).await;
    a.stop().await;
    within(SOON, "b leads", b.candidate().elected()).await;
    let took = lease_writes(&server, "b").pop().expect("b wrote").received.at;
    assert_eq!(took, releases(&server, "a")[0].received.at);
}

/// If the API server is slow, perhaps many candidates try. They go in turn.
#[tokio::test(start_paused = true)]
async fn candidate_waits_for_its_turn_again_after_a_slow_read() {
    let server = ApiServer::new();
    free(&server);
    let a = candidate(&server, "a").start();
    // It knows that the lease is free, and reads it once more before it takes it.
    while server.reads("a", "get", "leases") == 0 {
        yield_now().await;
    }
    let slow = Duration::from_millis(300);
    let read = server.inject(Fault::delay_before(slow).verb("get").resource("leases").times(1));
    until(SOON, "it reads", || read.hits() == 1).await;
    pass(slow + SOON).await;
    assert!(lease_writes(&server, "a").is_empty());
    within(Duration::from_secs(3), "a leads", a.candidate().elected()).await;
}

/// The watch shows who has won. In a large crowd, the reads of the losers would delay the winner.
#[tokio::test(start_paused = true)]
async fn loser_of_a_race_reads_at_once_only_without_a_watch() {
    for watches in [true, false] {
        let server = ApiServer::new();
        free(&server);
        let _refused = (!watches).then(|| server.inject(Fault::forbidden().verb("watch")));
        let slow = server.inject(Fault::delay_before(SOON).user("a").verb("update").times(1));
        let _race = server.inject(Fault::status(409).user("a").verb("update").times(1));
        let a = candidate(&server, "a").start();
        until(FIRST, "it tries", || slow.hits() == 1).await;
        let reads = server.reads("a", "get", "leases");
        pass(SOON * 2).await;
        assert_eq!(server.reads("a", "get", "leases") > reads, !watches, "it watches: {watches}");
        within(FIRST, "it tries again", a.candidate().elected()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_standby_makes_one_write_and_no_read() {
    let server = ApiServer::new();
    let (_a, b) = leader_and_standby(&server).await;
    pass(SOON).await;
    let (reads, writes) = (server.reads("b", "get", "leases"), lease_writes(&server, "b").len());
    assert_eq!(b.stop().await, LeaseEnd::Released);
    assert_eq!(standbys(&server), json!([]));
    let calls = (server.reads("b", "get", "leases") - reads, lease_writes(&server, "b").len() - writes);
    assert_eq!(calls, (0, 1));
}

/// The holder has renewed the lease meanwhile, and the watch has not shown that.
#[tokio::test(start_paused = true)]
async fn leaving_standby_tries_again_after_a_conflict() {
    let server = ApiServer::new();
    let (_a, b) = leader_and_standby(&server).await;
    let race = server.inject(Fault::status(409).user("b").verb("update").times(1));
    assert_eq!(b.stop().await, LeaseEnd::Released);
    assert_eq!(race.hits(), 1);
    assert_eq!((standbys(&server), &spec(&server)["holderIdentity"]), (json!([]), &json!("a")));
}
