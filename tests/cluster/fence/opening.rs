//! Elections that rely on a fence.

use super::ground::{Ground, LEASE, send};
use crate::{
    candidate::timing,
    support::{PATIENCE, until, within},
};
use http::Method;
use kube_client::{Client, Config};
use kube_leader_gate::{
    Candidate, Election, ErrNotLeader, Identity, Policy,
    election::{LeaseEnd, Running},
};
use serde_json::json;

/// A replica, whose pod has this name.
struct Replica {
    running: Running,
    client: Client,
}

impl Replica {
    async fn start(ground: &Ground, pod: &str) -> Self {
        Self::with(ground, pod, &ground.config(pod).await)
    }

    fn with(ground: &Ground, pod: &str, config: &Config) -> Self {
        let fence = ground.fence(&Policy::strict());
        let election = Election::builder(&ground.namespace, LEASE)
            .identity(Identity::new(pod).expect("an identity"))
            .timing(timing())
            .layer_lock(fence.layer(Client::try_from(config.clone()).expect("a client")))
            .build(config)
            .expect("an election");
        let client = fence.refusals().wrap(election.client(config).expect("a client"));
        Self { running: election.start(), client }
    }

    fn candidate(&self) -> &Candidate {
        self.running.candidate()
    }

    async fn elected(&self) {
        within(PATIENCE, "the candidate leads", self.candidate().elected()).await;
    }

    /// Waits until it says that there is no fence.
    async fn is_shut(&self) {
        let says = "the fence keeps the gate shut: no fence";
        let trouble = || self.candidate().trouble();
        until(says, async || trouble().is_some_and(|trouble| trouble.starts_with(says))).await;
    }
}

pub async fn the_gate_stays_shut_until_there_is_a_fence() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    let a = Replica::start(&ground, "pod-a").await;
    a.is_shut().await;
    assert!(!a.candidate().is_leader());
    let error = ground.touch(&a.client).await.unwrap_err();
    assert!(ErrNotLeader::find(&error).expect("rejected").to_string().contains("the election is in trouble"));
    fence.apply(&ground.admin).await.expect("applied");
    a.elected().await;
    until("the trouble is over", async || a.candidate().trouble().is_none()).await;
    ground.touch(&a.client).await.expect("the leader may write");
    assert_eq!(a.running.stop().await, LeaseEnd::Released);
}

/// The fence compares the holder with the pod in the token.
pub async fn identity_of_another_is_named() {
    let ground = Ground::new().await;
    ground.fence(&Policy::strict()).apply(&ground.admin).await.expect("applied");
    let a = Replica::with(&ground, "pod-x", &ground.config("pod-a").await);
    let says = "the identity of a replica must be its own name: 403";
    until("it says so", async || a.candidate().trouble().is_some_and(|it| it.contains(says))).await;
    assert!(!a.candidate().is_leader());
}

/// The API server has heard of the new holder before the gate opens, so it refuses none.
pub async fn the_first_write_of_each_term_is_never_refused() {
    let ground = Ground::new().await;
    ground.fence(&Policy::strict()).apply(&ground.admin).await.expect("applied");
    let mut leader = Replica::start(&ground, "pod-0").await;
    leader.elected().await;
    for number in 1..=10 {
        let next = Replica::start(&ground, &format!("pod-{number}")).await;
        until("it knows the leader", async || next.candidate().holder().is_some()).await;
        let (client, candidate) = (next.client.clone(), next.candidate().clone());
        let first = tokio::spawn({
            let path = ground.path("configmaps");
            async move {
                candidate.elected().await;
                let map = json!({ "metadata": { "generateName": "first-" } });
                send(&client, Method::POST, &path, Some(&map)).await
            }
        });
        assert_eq!(leader.running.stop().await, LeaseEnd::Released);
        within(PATIENCE, "it writes", first).await.expect("no panic").expect("the first write passes");
        leader = next;
    }
}

/// Another program deletes the lease and overwrites the holder while the candidate waits. Then it stops.
pub async fn s7_theft_deletion_and_stop_are_seen_while_the_gate_is_shut() {
    let ground = Ground::new().await;
    let a = Replica::start(&ground, "pod-a").await;
    a.is_shut().await;
    let uid = async || {
        let lease = send(&ground.admin, Method::GET, &ground.lease_path(), None).await;
        lease.map(|lease| lease["metadata"]["uid"].clone()).ok()
    };
    let before = uid().await;
    ground.delete_lease().await;
    until("it holds a new lease", async || uid().await.is_some_and(|now| Some(now) != before)).await;
    assert!(!a.candidate().is_leader());
    ground.hold("pod-x").await;
    until("it sees the theft", async || a.candidate().holder().as_deref() == Some("pod-x")).await;
    assert!(!a.candidate().is_leader());
    assert_eq!(within(PATIENCE, "it stops", a.running.stop()).await, LeaseEnd::Released);
}

/// Another candidate may be able to write, so this one does not keep the lease.
pub async fn a_candidate_that_may_not_write_leaves_the_lease_to_others() {
    let ground = Ground::new().await;
    ground.fence(&Policy::strict()).apply(&ground.admin).await.expect("applied");
    let a = Replica::with(&ground, "pod-a", &ground.podless_config().await);
    // Until the fence is in force, there is none.
    until("it says why its gate is shut", async || {
        a.candidate().trouble().is_some_and(|trouble| trouble.contains("a token that names no pod"))
    })
    .await;
    until("it holds the lease", async || a.candidate().holder().as_deref() == Some("pod-a")).await;
    let b = Replica::start(&ground, "pod-b").await;
    b.elected().await;
    ground.touch(&b.client).await.expect("the leader may write");
    assert!(!a.candidate().is_leader());
}
