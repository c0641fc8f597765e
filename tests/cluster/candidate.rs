//! Candidates with connections of their own, and the writes of their workloads.

use crate::{
    line::Line,
    support::{PATIENCE, until, within},
    world::{Joined, World},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::{Candidate, ElectionBuilder, Running},
};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;

/// One replica: an election, and a workload's client behind its gate.
pub struct Contender {
    /// From the election to the server.
    pub line: Line,
    /// From the workload to the server.
    pub work: Line,
    pub client: Client,
    pub running: Running,
}

/// Writes that continue until this is dropped.
pub struct Writer {
    _task: JoinSet<()>,
}

/// Renewed often, and so long that a leader on a busy machine keeps its lease.
pub fn timing() -> LeaseTiming {
    let (lease, renew) = (Duration::from_secs(15), Duration::from_secs(10));
    LeaseTiming::new(lease, renew, Duration::from_millis(400)).expect("a valid timing")
}

/// For scenarios that need no renewal and count requests: polls, silent watches and calls without an answer add none.
pub fn patient() -> LeaseTiming {
    LeaseTiming::default().with_call_timeout(Duration::from_secs(15)).expect("a valid timing")
}

/// A candidate for the lease `operator`, with its user's name for an identity.
pub fn builder(world: &impl World, user: &str) -> ElectionBuilder {
    builder_for(world, user, "operator")
}

pub fn builder_for(world: &impl World, user: &str, lease: &str) -> ElectionBuilder {
    let identity = Identity::new(user).expect("an identity");
    world.on_clock(Election::builder(world.namespace(), lease).identity(identity).timing(timing()))
}

pub async fn start(world: &impl World, user: &str, builder: ElectionBuilder) -> Contender {
    let Joined { election, line, client, work } = world.join(user, builder).await;
    Contender { line, work, client, running: election.start() }
}

pub async fn contending(world: &impl World, user: &str) -> Contender {
    start(world, user, builder(world, user)).await
}

/// A candidate that leads already.
pub async fn leading(world: &impl World, user: &str) -> Contender {
    let candidate = contending(world, user).await;
    candidate.elected().await;
    candidate
}

/// A candidate that already knows the leader.
pub async fn following(world: &impl World, user: &str) -> Contender {
    let candidate = contending(world, user).await;
    until("the candidate knows the holder", async || candidate.candidate().holder().is_some()).await;
    candidate
}

// === impl Contender ===

impl Contender {
    pub fn candidate(&self) -> &Candidate {
        self.running.candidate()
    }

    /// Waits until it may write; returns its term.
    pub async fn elected(&self) -> kube_leader_gate::leadership::Term {
        within(PATIENCE, "the candidate leads", self.candidate().elected()).await
    }

    /// Waits for this many renewals.
    pub async fn renews(&self, times: usize) {
        renews(self.candidate(), times).await;
    }

    /// One write.
    pub async fn write(&self) -> Result<(), kube_client::Error> {
        write(&self.client).await
    }

    /// Writes every 10 ms, whatever the result.
    pub fn writing(&self) -> Writer {
        let client = self.client.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                // The gate rejects most writes, because it does not always lead.
                let _ = write(&client).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Writer { _task: task }
    }
}

/// Waits until the candidate has renewed this often.
pub async fn renews(candidate: &Candidate, times: usize) {
    for _ in 0..times {
        let mut left = candidate.leadership().time_left();
        // The remaining time falls, except at a renewal.
        until("the candidate renews", async || {
            let before = std::mem::replace(&mut left, candidate.leadership().time_left());
            left > before
        })
        .await;
    }
}

/// Changes the config map `work`, which is there in each scenario.
pub async fn write(client: &Client) -> Result<(), kube_client::Error> {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let patch = json!({ "data": { "n": fastrand::u64(..).to_string() } });
    maps.patch("work", &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

/// Prepares each scenario: creates an object to write to.
pub async fn prepare(world: &impl World) {
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("work".into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    Api::default_namespaced(world.client("admin"))
        .create(&PostParams::default(), &map)
        .await
        .expect("something to write to");
}
