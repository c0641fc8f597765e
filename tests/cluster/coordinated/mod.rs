//! Coordinated leader election, on a real kube-apiserver whose coordinator chooses the holder.

pub mod election;
pub mod mixed;
pub mod trouble;

use crate::{
    apiserver::Cluster,
    candidate::{Contender, builder, start},
    real::Real,
    support::until,
    world::World,
};
use http::{Method, Request, header::CONTENT_TYPE};
use kube_leader_gate::{
    LeaseTiming,
    election::ElectionBuilder,
    testing::{Judge, Verdict, WriteRecord},
};
use serde_json::Value;
use test_support::assert_safety;
use test_support::coordination::{Coordinated as _, Coordination};

type Coordinated = Real<&'static Cluster>;

/// A candidate of this version.
async fn joins(world: &Coordinated, user: &str, version: &str, timing: LeaseTiming) -> Contender {
    start(world, user, with(world, user, coordination(world, user, version)).timing(timing)).await
}

fn coordination(world: &Coordinated, user: &str, version: &str) -> Coordination {
    Coordination::new(world.client(user), version).expect("a version")
}

fn with(world: &Coordinated, user: &str, coordination: Coordination) -> ElectionBuilder {
    builder(world, user).coordinated(coordination)
}

/// The `LeaseCandidate` of this name, if there is one.
async fn lease_candidate(world: &Coordinated, name: &str) -> Option<Value> {
    match send(world, Method::GET, &format!("/{name}")).await {
        Ok(object) => Some(object),
        Err(kube_client::Error::Api(status)) if status.is_not_found() => None,
        Err(error) => panic!("{error}"),
    }
}

async fn send(world: &Coordinated, method: Method, name: &str) -> Result<Value, kube_client::Error> {
    let path =
        format!("/apis/coordination.k8s.io/v1beta1/namespaces/{}/leasecandidates{name}", world.namespace());
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    world.client("admin").request(request.body(Vec::new()).expect("a request")).await
}

/// Waits until the coordinator can choose this candidate.
async fn is_listed(world: &Coordinated, name: &str) {
    until("it has a LeaseCandidate", async || lease_candidate(world, name).await.is_some()).await;
}

/// The writes in the namespace, without those on the objects of the election itself.
async fn work(world: &Coordinated) -> Vec<WriteRecord> {
    let mut log = world.writes().await;
    log.retain(|write| write.resource != "leasecandidates");
    log
}

/// Waits until some writes of this user have taken effect.
async fn writes(world: &Coordinated, user: &str) {
    let written = |it: &&WriteRecord| it.user == user && it.resource == "configmaps" && it.took_effect();
    until("it writes", async || work(world).await.iter().filter(written).count() > 3).await;
}

/// The log's report on `operator`. None of `candidates` wrote after another candidate had the lease.
async fn judged(world: &Coordinated, candidates: &[&str]) -> Verdict {
    let judge = Judge::new(world.namespace(), "operator", candidates.iter().copied());
    let verdict = judge.verdict(&work(world).await);
    let overlaps: Vec<_> = verdict.overlaps().collect();
    assert_safety!(overlaps.is_empty(), "writes by a non-holder: {overlaps:#?}");
    verdict
}
