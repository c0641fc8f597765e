//! Replicas that take over early, and what the audit log has of them.

use super::node::Node;
use crate::{
    apiserver::{AuditEvent, Cluster},
    candidate::{Contender, builder_for, patient, start},
    real::Real,
    support::until,
    world::World,
};
use kube_leader_gate::election::ElectionBuilder;
use test_support::early_takeover::EarlyTakeover;

pub type Server = Real<&'static Cluster>;

/// A replica of this user, in the container `manager` of the pod of its name. By its times, no lease expires while a test
/// waits for a takeover.
pub async fn replica(world: &Server, user: &str, uid: &str) -> Contender {
    start(world, user, builder(world, user, uid)).await
}

pub fn builder(world: &Server, user: &str, uid: &str) -> ElectionBuilder {
    let early = EarlyTakeover::of_pod(world.client(user), user).container("manager");
    builder_for(world, user, "operator").timing(patient()).pod_uid(uid).layer_lock(early)
}

/// Requests of this user for pods.
pub async fn pod_requests(world: &Server, user: &str, verb: &str) -> Vec<AuditEvent> {
    let mut events = world.requests().await;
    events.retain(|event| {
        let stage = if verb == "watch" && event.response_status.code == 200 {
            "ResponseStarted"
        } else {
            "ResponseComplete"
        };
        event.user.username == user
            && event.object_ref.resource == "pods"
            && event.verb == verb
            && event.stage == stage
    });
    events
}

/// One replica leads, and the other watches its pod.
pub async fn leader_and_follower(world: &Server, node: &Node, users: [&str; 2]) -> (Contender, Contender) {
    let leader = replica(world, users[0], &node.create(users[0]).await).await;
    leader.elected().await;
    let follower = replica(world, users[1], &node.create(users[1]).await).await;
    until("it watches the pod", async || !pod_requests(world, users[1], "watch").await.is_empty()).await;
    (leader, follower)
}
