//! Candidates over the in-process API server: real kube clients, straight to the server.

use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::{ElectionBuilder, ErrBuild, Running},
    kube_client::{Client, client::Body},
    lease::LeasePool,
    testing::{ApiServer, TokioClock},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;

pub use test_support::wait::{until, within};

pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";

/// Long enough for a handover that does not wait for an expiry.
pub const SOON: Duration = Duration::from_millis(100);

/// Long enough for a candidate that finds no lease: it reads twice before it creates one.
pub const FIRST: Duration = Duration::from_secs(1);

/// How long a takeover waits by default after the end was seen.
pub const SETTLE: Duration = Duration::from_secs(2);

/// The builder of a candidate on the lease `default/operator`, on tokio's clock, at 15/10/2 s.
pub fn builder(identity: &str) -> ElectionBuilder {
    Election::builder("default", "operator")
        .identity(Identity::new(identity).expect("an identity"))
        .timing(LeaseTiming::fast())
        .clock(Arc::new(TokioClock::new()))
}

/// Its lease calls go straight to the server, so that paused time drives everything.
pub fn build(server: &ApiServer, user: &str, builder: ElectionBuilder) -> Result<Election, ErrBuild> {
    let service = server.service().user(user);
    builder.build_in(&LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client"))
}

/// A candidate without early takeover that leads already.
pub async fn leading(server: &ApiServer, identity: &str) -> Running {
    let running = build(server, identity, builder(identity)).expect("a valid election").start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    running
}

/// Tries to write each millisecond, through the gate of `election`.
pub fn hammer(tasks: &mut JoinSet<()>, server: &ApiServer, election: &Election, user: &'static str) {
    let client = election.wrap(Client::new(server.service().user(user), "default"));
    tasks.spawn(async move {
        loop {
            let review = http::Request::post("/apis/authentication.k8s.io/v1/tokenreviews");
            let review = review.header("content-type", "application/json").body(Body::from(
                br#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"unknown"}}"#.to_vec(),
            ));
            let _ = client.send(review.expect("a request")).await;
            pass(Duration::from_millis(1)).await;
        }
    });
}

/// Checks in the server's log that no two writes of different candidates overlap. Returns the writers in order, once
/// for each turn.
pub fn writers(server: &ApiServer) -> Vec<String> {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "tokenreviews" && write.took_effect());
    log.sort_by_key(|write| write.received);
    let mut writers: Vec<String> = Vec::new();
    for (place, write) in log.iter().enumerate() {
        if writers.last() == Some(&write.user) {
            continue;
        }
        let over = log[..place].iter().all(|it| it.user == write.user || it.completed < Some(write.received));
        test_support::assert_safety!(over, "two write at once: {write:?}");
        writers.push(write.user.clone());
    }
    writers
}

/// The spec of the lease.
pub fn spec(server: &ApiServer) -> Value {
    server.object(LEASE).expect("the lease")["spec"].take()
}

pub fn annotations(server: &ApiServer) -> Value {
    server.object(LEASE).expect("the lease")["metadata"]["annotations"].take()
}

/// Lets paused time pass.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
