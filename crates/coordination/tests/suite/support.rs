//! A coordinator that does what a test says, and candidates for it.

use kube_client::{Client, Error, client::Body};
use kube_leader_gate::{
    Candidate, Election, Identity, LeaseTiming,
    election::{ElectionBuilder, ErrBuild, Running},
    lease::LeasePool,
    testing::{ApiServer, TokioClock, WriteRecord},
};
use kube_leader_gate_coordination::{Coordinated, Coordination};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

pub(crate) use test_support::{
    refusals::{is_cut_off, is_not_leader},
    wait::{until, within},
};

/// The path of the lease.
pub(crate) const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";

/// Long enough for a handover that does not wait for an expiry.
pub(crate) const SOON: Duration = Duration::from_millis(100);

/// Long enough for a candidate that finds no lease.
pub(crate) const FIRST: Duration = Duration::from_secs(1);

/// How long the release waits after an unanswered write at 15/10/2 s: the safety margin.
pub(crate) const SKEW: Duration = Duration::from_secs(5);

const COLLECTION: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates";

/// The path of a `LeaseCandidate`.
pub(crate) fn path(identity: &str) -> String {
    format!("{COLLECTION}/{identity}")
}

/// The layer of a candidate. Its `LeaseCandidate` calls go straight to the server.
pub(crate) fn coordination(server: &ApiServer, identity: &str) -> Coordination {
    let client = Client::new(server.service().user(identity), "default");
    Coordination::new(client, "1.5.0").expect("a version")
}

/// The builder of a candidate on the lease `default/operator`, on tokio's clock, at 15/10/2 s.
pub(crate) fn builder(identity: &str) -> ElectionBuilder {
    Election::builder("default", "operator")
        .identity(Identity::new(identity).expect("an identity"))
        .timing(LeaseTiming::fast())
        .clock(Arc::new(TokioClock::new()))
}

/// Builds it over calls that go straight to the server.
pub(crate) fn build(server: &ApiServer, user: &str, builder: ElectionBuilder) -> Result<Election, ErrBuild> {
    let service = server.service().user(user);
    builder.build_in(&LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client"))
}

/// A workload's client straight to the server, behind the election's gate.
pub(crate) fn gated(server: &ApiServer, election: &Election, user: &str) -> Client {
    election.wrap(Client::new(server.service().user(user), "default"))
}

/// A write that each server takes.
pub(crate) async fn write(client: &Client) -> Result<(), Error> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": "unknown" } });
    let request = http::Request::post("/apis/authentication.k8s.io/v1/tokenreviews")
        .header("content-type", "application/json")
        .body(Body::from(review.to_string().into_bytes()))
        .expect("a request");
    let answer = client.send(request).await?;
    assert!(answer.status().is_success(), "{}", answer.status());
    Ok(())
}

/// A write in a task of its own, once it is open. A fault of the server holds it up.
pub(crate) async fn begin_write(leader: &Candidate, client: &Client) -> JoinHandle<Result<(), Error>> {
    let (before, client) = (leader.leadership().writes_under_way(), client.clone());
    let writing = tokio::spawn(async move { write(&client).await });
    until(SOON, "the write is under way", || leader.leadership().writes_under_way() > before).await;
    writing
}

/// Lets so much time pass.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The lease with this spec.
pub(crate) fn lease(spec: &Value) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "operator", "namespace": "default" }, "spec": spec })
}

/// Creates a lease without a holder.
pub(crate) fn free(server: &ApiServer) {
    server.put("outsider", LEASE, lease(&json!({ "holderIdentity": "" }))).expect("a valid lease");
}

/// The spec of the lease.
pub(crate) fn spec(server: &ApiServer) -> Value {
    server.object(LEASE).expect("the lease")["spec"].take()
}

/// The writes to the lease that `user` made with success.
pub(crate) fn lease_writes(server: &ApiServer, user: &str) -> Vec<WriteRecord> {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "leases" && write.user == user && write.took_effect());
    log
}

/// The writes by which `user` released the lease.
pub(crate) fn releases(server: &ApiServer, user: &str) -> Vec<WriteRecord> {
    let mut writes = lease_writes(server, user);
    writes.retain(|write| write.lease.as_ref().is_some_and(|lease| lease.holder_identity.is_empty()));
    writes
}

/// A candidate that contends by itself.
pub(crate) fn candidate(server: &ApiServer, identity: &str) -> Election {
    build(server, identity, builder(identity)).expect("a valid election")
}

/// A candidate for the lease `operator`.
pub(crate) fn coordinated(server: &ApiServer, identity: &str) -> Election {
    let builder = builder(identity).coordinated(coordination(server, identity));
    build(server, identity, builder).expect("a valid election")
}

/// A candidate that the coordinator has named, and that leads.
pub(crate) async fn leading(server: &ApiServer, identity: &str) -> (Running, Client) {
    let election = coordinated(server, identity);
    let client = gated(server, &election, identity);
    let running = election.start();
    is_listed(server, identity).await;
    name(server, identity);
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

/// Waits until the coordinator can choose this candidate.
pub(crate) async fn is_listed(server: &ApiServer, identity: &str) {
    until(FIRST, "it has a LeaseCandidate", || server.object(&path(identity)).is_some()).await;
}

/// What the coordinator of the API server writes when it names a holder.
pub(crate) fn name(server: &ApiServer, holder: &str) {
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 5, "strategy": "OldestEmulationVersion",
                       "renewTime": "2026-01-02T03:04:05.000000Z" });
    if server.object(LEASE).is_none() {
        server.put("coordinator", LEASE, lease(&spec)).expect("a valid lease");
        return;
    }
    let naming = |lease: &mut Value| {
        for (field, value) in spec.as_object().expect("fields") {
            lease["spec"][field] = value.clone();
        }
        let spec = lease["spec"].as_object_mut().expect("a spec");
        spec.remove("acquireTime");
        spec.remove("preferredHolder");
    };
    server.edit("coordinator", LEASE, naming).expect("the lease is there");
}

/// What it writes when it prefers another candidate than the holder.
pub(crate) fn prefer(server: &ApiServer, preferred: &str) {
    server
        .edit("coordinator", LEASE, |lease| lease["spec"]["preferredHolder"] = preferred.into())
        .expect("the lease is there");
}

/// Waits until a candidate has released the lease.
pub(crate) async fn is_released(server: &ApiServer) {
    let holder = || server.object(LEASE).expect("the lease")["spec"]["holderIdentity"].take();
    until(SOON, "the lease is released", || holder() == "").await;
}
