//! What a coordinated candidate says when it cannot take part.

use super::{Coordinated, coordination, joins, lease_candidate, with};
use crate::{
    candidate::{Contender, prepare, start, timing},
    outsider::Outsider,
    real::Real,
    support::{PATIENCE, throughout, until},
    world::World,
};
use http::{Request, header::CONTENT_TYPE};
use kube_leader_gate::LeaseTiming;
use serde_json::{Value, json};
use std::time::Duration;

const GUIDE: &str = include_str!("../../../crates/coordination/README.md");
const PRODUCTION: &str = include_str!("../../../docs/PRODUCTION.md");
const USER: &str = "restricted-20";

async fn says(candidate: &Contender, words: &[&str]) {
    let trouble = || candidate.candidate().trouble().unwrap_or_default().to_string();
    until(&format!("it says {words:?}"), async || words.iter().all(|word| trouble().contains(word))).await;
    assert!(!candidate.candidate().is_leader());
    candidate.candidate().check_ready().unwrap_err();
}

pub async fn server_without_the_api_is_named() {
    let world = Real::shared().await;
    prepare(&world).await;
    let a = joins(&world, "candidate-0", "1.5.0", timing()).await;
    says(
        &a,
        &["the LeaseCandidate cannot be kept: create: not found", "feature gate CoordinatedLeaderElection"],
    )
    .await;
    // Not even a lease that no candidate holds.
    Outsider::of(&world).create(json!({})).await;
    throughout(timing().lease_duration(), "the gate is shut", || !a.candidate().can_write()).await;
    a.write().await.unwrap_err();
    assert_eq!(Outsider::of(&world).holder().await, "");
}

async fn post(world: &Coordinated, path: &str, kind: &str, body: String) -> Value {
    let request = Request::post(path).header(CONTENT_TYPE, kind).body(body.into_bytes()).expect("a request");
    world.client("admin").request(request).await.expect("an answer")
}

/// Grants the documented Role of an election, perhaps with the documented rule for `LeaseCandidates`.
async fn grant(world: &Coordinated, whole: bool) {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", world.namespace());
    let block = |page: &'static str, what: &str| {
        let block = page.split("```").find(|block| block.contains(what)).expect("a block of the page");
        block.strip_prefix("yaml\n").expect("YAML")
    };
    let mut role = block(PRODUCTION, "kind: Role\n").to_owned();
    if whole {
        role += block(GUIDE, "resources: [leasecandidates]\n");
    }
    let manifest = role
        .replace("my-namespace", world.namespace())
        .replace("my-controller-election", if whole { "whole" } else { "part" })
        .replace("[my-controller]", "[operator]");
    let role = post(world, &format!("{rbac}/roles"), "application/yaml", manifest).await;
    let name = &role["metadata"]["name"];
    let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER });
    let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
    let binding = json!({ "metadata": { "name": name }, "roleRef": reference, "subjects": [subject] });
    post(world, &format!("{rbac}/rolebindings"), "application/json", binding.to_string()).await;
}

pub async fn missing_permission_is_named_until_granted() {
    let world = Real::coordinated().await;
    grant(&world, false).await;
    let a = joins(&world, USER, "1.5.0", timing()).await;
    says(&a, &["forbidden", USER, "get, create, update, delete and watch on leasecandidates"]).await;
    grant(&world, true).await;
    a.elected().await;
    until("it is ready", async || a.candidate().check_ready().is_ok()).await;
    // The Role suffices for a whole life.
    let refused = async || {
        let requests = world.requests().await;
        let mut refused =
            requests.iter().filter(|it| it.user.username == USER && it.response_status.code == 403);
        refused.next_back().map(|it| (it.verb.clone(), it.request_uri.clone()))
    };
    let before = world.requests().await.iter().filter(|it| it.response_status.code == 403).count();
    a.renews(2).await;
    a.running.stop().await;
    let after = world.requests().await.iter().filter(|it| it.response_status.code == 403).count();
    assert_eq!(before, after, "{:?}", refused().await);
    assert!(lease_candidate(&world, USER).await.is_none());
}

/// A strategy of its own, and no coordinator that knows it.
pub async fn silent_coordinator_is_named() {
    let world = Real::coordinated().await;
    let coordination = coordination(&world, "candidate-0", "1.5.0").strategy("example.com/none").unwrap();
    let seconds = Duration::from_secs;
    let short =
        LeaseTiming::new(seconds(2), Duration::from_millis(1500), Duration::from_millis(300)).unwrap();
    let a = start(&world, "candidate-0", with(&world, "candidate-0", coordination).timing(short)).await;
    let listed = async || lease_candidate(&world, "candidate-0").await.is_some();
    until("it is listed", listed).await;
    let trouble = || a.candidate().trouble().unwrap_or_default();
    // It waits for a lease duration and 30 s.
    let bound = seconds(2 + 30) + PATIENCE;
    let named = test_support::wait::until_told(bound, Duration::from_millis(50), "it says so", async || {
        trouble().contains("no coordinator names a holder")
    });
    named.await;
    assert!(!a.candidate().is_leader());
}
