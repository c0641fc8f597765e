//! Candidates over the in-process API server, in paused time: real kube clients, straight to the server.

pub mod priority;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube_client::{Api, Client, api::PostParams};
use kube_leader_gate::{
    Candidate, Election, Identity, LeaseTiming,
    election::{ElectionBuilder, ErrBuild, ErrElectionEnded, Finished, LeaseEnd, Running},
    lease::LeasePool,
    testing::{ApiServer, ManualClock, TokioClock, WriteRecord},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

pub use test_support::{
    refusals::{is_cut_off, is_not_leader},
    wait::{until, within},
};

pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";

/// Long enough for a handover that does not wait for an expiry.
pub const SOON: Duration = Duration::from_millis(100);

/// Long enough for a candidate that finds no lease: it reads twice before it creates one.
pub const FIRST: Duration = Duration::from_secs(1);

/// How long the release waits after an unanswered write at 15/10/2 s: the safety margin.
pub const SKEW: Duration = Duration::from_secs(5);

/// The builder of a candidate on the lease `default/operator`, on tokio's clock, at 15/10/2 s. Its gate alone ends a write that
/// takes long: the server gives none up.
pub fn builder(identity: &str) -> ElectionBuilder {
    Election::builder("default", "operator")
        .identity(Identity::new(identity).expect("an identity"))
        .timing(LeaseTiming::fast())
        .request_deadline(false)
        .clock(Arc::new(TokioClock::new()))
}

/// A candidate whose lease calls go straight to the server, so that paused time drives everything.
pub fn candidate(server: &ApiServer, identity: &str) -> Election {
    build(server, identity, builder(identity)).expect("a valid election")
}

pub fn build(server: &ApiServer, user: &str, builder: ElectionBuilder) -> Result<Election, ErrBuild> {
    let service = server.service().user(user);
    builder.build_in(&LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client"))
}

/// Waits until the candidate leads, and moves its stopped clock on meanwhile.
pub async fn leads_by(clock: &ManualClock, bound: Duration, candidate: &Candidate) {
    let leads = || {
        let leads = candidate.is_leader();
        clock.advance(Duration::from_millis(u64::from(!leads)));
        leads
    };
    until(bound, "the candidate leads", leads).await;
}

/// A workload's client straight to the server, behind the election's gate.
pub fn gated(server: &ApiServer, election: &Election, user: &str) -> Client {
    election.wrap(Client::new(server.service().user(user), "default"))
}

/// A candidate that leads already.
pub async fn leading(server: &ApiServer, identity: &str) -> (Running, Client) {
    let election = candidate(server, identity);
    let client = gated(server, &election, identity);
    let running = election.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

/// One write, as Pinniped's own test does it.
pub async fn write(client: &Client) -> Result<(), kube_client::Error> {
    let review = TokenReview {
        spec: TokenReviewSpec { token: Some("unknown".into()), ..TokenReviewSpec::default() },
        ..TokenReview::default()
    };
    Api::<TokenReview>::all(client.clone()).create(&PostParams::default(), &review).await.map(drop)
}

/// A write in a task of its own, once it is open. A fault of the server holds it up.
pub async fn begin_write(leader: &Candidate, client: &Client) -> JoinHandle<Result<(), kube_client::Error>> {
    let (before, client) = (leader.leadership().writes_under_way(), client.clone());
    let writing = tokio::spawn(async move { write(&client).await });
    until(SOON, "the write is under way", || leader.leadership().writes_under_way() > before).await;
    writing
}

/// What a run has ended with, to compare.
pub fn parts<T>(run: Result<Finished<T>, ErrElectionEnded>) -> Result<(T, LeaseEnd), ErrElectionEnded> {
    run.map(|Finished { output, lease, .. }| (output, lease))
}

/// The lease with this spec.
pub fn lease(spec: &Value) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "operator", "namespace": "default" }, "spec": spec })
}

/// Creates a lease without a holder: with a stopped clock, a candidate that finds no lease would not get past its
/// first read.
pub fn free(server: &ApiServer) {
    server.put("outsider", LEASE, lease(&json!({ "holderIdentity": "" }))).expect("a valid lease");
}

/// Releases the lease as its holder does.
pub fn release(server: &ApiServer) {
    server
        .edit("outsider", LEASE, |lease| {
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["leaseDurationSeconds"] = 1.into();
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            lease["spec"]["acquireTime"] = now.clone().into();
            lease["spec"]["renewTime"] = now.into();
            let count = lease["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
            lease["spec"]["leaseTransitions"] = count.into();
        })
        .expect("the lease is there");
}

/// The spec of the lease.
pub fn spec(server: &ApiServer) -> Value {
    server.object(LEASE).expect("the lease")["spec"].take()
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

/// The writes to the lease that `user` made with success.
pub fn lease_writes(server: &ApiServer, user: &str) -> Vec<WriteRecord> {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "leases" && write.user == user && write.took_effect());
    log
}

/// Whether this candidate has held the lease after every write to it.
pub fn always_held_by(server: &ApiServer, holder: &str) -> bool {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "leases" && write.took_effect());
    log.iter().all(|write| write.lease.as_ref().is_some_and(|lease| lease.holder_identity == holder))
}

/// The writes by which `user` released the lease.
pub fn releases(server: &ApiServer, user: &str) -> Vec<WriteRecord> {
    let mut writes = lease_writes(server, user);
    writes.retain(|write| write.lease.as_ref().is_some_and(|lease| lease.holder_identity.is_empty()));
    writes
}

/// Lets paused time pass.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
