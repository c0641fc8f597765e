//! Candidates over the in-process API server: real kube clients, straight to the server.

use kube_leader_gate::{
    Candidate, Election, Identity, LeaseTiming,
    election::ElectionBuilder,
    kube_client::{Client, Error},
    lease::LeasePool,
    testing::{ApiServer, TokioClock},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

pub use test_support::wait::{until, within};

pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";

/// Long enough for a handover that does not wait for an expiry.
pub const SOON: Duration = Duration::from_millis(100);

/// Long enough for a candidate that finds no lease: it reads twice before it creates one.
pub const FIRST: Duration = Duration::from_secs(1);

/// At 15/10/2 s.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// How long a release waits after an unanswered write.
pub const SKEW: Duration = Duration::from_secs(5);
/// How long a claim waits for the fence: half of a call timeout.
pub const PATIENCE: Duration = Duration::from_micros(812_500);

/// The builder of a candidate on the lease `default/operator`, on tokio's clock, at 15/10/2 s.
pub fn builder(identity: &str) -> ElectionBuilder {
    Election::builder("default", "operator")
        .identity(Identity::new(identity).expect("an identity"))
        .timing(LeaseTiming::fast())
        .clock(Arc::new(TokioClock::new()))
}

/// A candidate that relies on no fence.
pub fn candidate(server: &ApiServer, identity: &str) -> Election {
    let service = server.service().user(identity);
    let election = builder(identity)
        .build_in(&LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client"));
    election.expect("a valid election")
}

/// One write.
pub async fn write(client: &Client) -> Result<(), Error> {
    let review =
        json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": "x" } });
    let request = http::Request::post("/apis/authentication.k8s.io/v1/tokenreviews");
    let request = request.header("content-type", "application/json");
    client.request::<Value>(request.body(review.to_string().into_bytes()).expect("a request")).await.map(drop)
}

/// A write in a task of its own, once it is open. A fault of the server holds it up.
pub async fn begin_write(leader: &Candidate, client: &Client) -> JoinHandle<Result<(), Error>> {
    let (before, client) = (leader.leadership().writes_under_way(), client.clone());
    let writing = tokio::spawn(async move { write(&client).await });
    until(SOON, "the write is under way", || leader.leadership().writes_under_way() > before).await;
    writing
}

/// Creates a lease without a holder.
pub fn free(server: &ApiServer) {
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "metadata": { "name": "operator", "namespace": "default" }, "spec": { "holderIdentity": "" } });
    server.put("outsider", LEASE, lease).expect("a valid lease");
}

/// The holder that the lease names.
pub fn holder(server: &ApiServer) -> String {
    let lease = server.object(LEASE).unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Writes an outsider into the lease.
pub fn steal(server: &ApiServer) {
    server
        .edit("outsider", LEASE, |lease| {
            lease["spec"]["holderIdentity"] = "outsider".into();
            lease["spec"]["leaseTransitions"] = 7.into();
        })
        .expect("the lease is there");
}

/// How often `user` has released the lease.
pub fn releases(server: &ApiServer, user: &str) -> usize {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "leases" && write.user == user && write.took_effect());
    log.iter().filter(|it| it.lease.as_ref().is_some_and(|lease| lease.holder_identity.is_empty())).count()
}

/// Lets paused time pass.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
