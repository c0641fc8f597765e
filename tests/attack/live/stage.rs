//! A leader, and one follower for each policy.

use super::bodies::object;
use crate::{
    apiserver::{Cluster, assets, create, define_widgets},
    exemptions::{self, Exemption},
    requests::{NAMES, NAMESPACES},
};
use clap::Parser;
use kube_client::Client;
use kube_leader_gate::{
    Candidate, Election, Identity, LeaseTiming, Policy,
    election::{LeaseEnd, Running},
};
use serde_json::json;
use std::{net::SocketAddr, time::Duration};
use test_support::{
    kube_leader_gate_sidecar::{Args, Failure, Sidecar},
    wait::until,
};
use tokio::{sync::oneshot, task::JoinHandle};

pub const LEADER: &str = "candidate-0";
pub const LEASE: (&str, &str) = ("default", "attacked");
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Stage {
    pub cluster: Cluster,
    /// A user that may do anything, and is not judged.
    pub client: Client,
    leader: Running,
    followers: Vec<Follower>,
}

/// A sidecar that does not lead.
pub struct Follower {
    /// The user that the server sees.
    pub user: String,
    /// `None` under the strict policy.
    pub exemption: Option<Exemption>,
    pub addr: SocketAddr,
    candidate: Candidate,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), Failure>>,
}

// === impl Stage ===

impl Stage {
    pub async fn set() -> Self {
        let cluster = Cluster::start(assets()).await;
        let client = cluster.client("admin");
        furnish(&client).await;
        // The default timing, for longer than the attack: a follower that leads would let everything through.
        let timing = LeaseTiming::default();
        let leader = election(&cluster, LEADER, timing, Policy::strict()).start();
        leader.candidate().elected().await;
        let exemptions = std::iter::once(None).chain(exemptions::used().into_iter().map(Some));
        let mut followers = Vec::new();
        for (number, exemption) in (1..).zip(exemptions) {
            followers.push(Follower::start(&cluster, format!("candidate-{number}"), exemption).await);
        }
        Self { cluster, client, leader, followers }
    }

    pub fn followers(&self) -> &[Follower] {
        &self.followers
    }

    /// By user.
    pub fn policies(&self) -> Vec<(String, Policy)> {
        self.followers.iter().map(|follower| (follower.user.clone(), follower.policy())).collect()
    }

    /// The users that may attack at once. The deletion of the namespace comes last, because a deleted namespace
    /// accepts nothing more.
    pub fn groups(&self) -> [Vec<&Follower>; 2] {
        let (last, first) = self.followers.iter().partition(|follower| {
            follower.exemption.as_ref().is_some_and(|exemption| exemption.is_about("namespaces"))
        });
        [first, last]
    }

    /// Checks that the leader has led all the time, and stops all.
    pub async fn end(self) {
        for follower in self.followers {
            assert_eq!(follower.candidate.holder().as_deref(), Some(LEADER), "{}", follower.user);
            let _ = follower.stop.send(());
            follower.running.await.expect("it ends").expect("it stops in order");
        }
        assert_eq!(self.leader.stop().await, LeaseEnd::Released);
    }
}

// === impl Follower ===

impl Follower {
    async fn start(cluster: &Cluster, user: String, exemption: Option<Exemption>) -> Self {
        let lease = [LEASE.0, LEASE.1].join("/");
        let options = ["--lease", &lease, "--listen", "127.0.0.1:0", "--identity", &user, "--timing", "fast"];
        let mut args = Args::parse_from(["sidecar"].into_iter().chain(options));
        args.kubeconfig = Some(cluster.kubeconfig(&user, &cluster.url()));
        let sidecar = Sidecar::bind(&args, policy(exemption.as_ref())).await.expect("a sidecar");
        let (addr, candidate) = (sidecar.addr(), sidecar.candidate());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(sidecar.run(stopped));
        until(PATIENCE, "it sees the leader", || candidate.holder().as_deref() == Some(LEADER)).await;
        Self { user, exemption, addr, candidate, stop, running }
    }

    fn policy(&self) -> Policy {
        policy(self.exemption.as_ref())
    }

    /// For messages.
    pub fn name(&self) -> String {
        self.exemption.as_ref().map_or_else(|| "the strict policy".to_owned(), ToString::to_string)
    }
}

fn policy(exemption: Option<&Exemption>) -> Policy {
    exemption.map_or_else(Policy::strict, Exemption::policy)
}

fn election(cluster: &Cluster, user: &str, timing: LeaseTiming, policy: Policy) -> Election {
    let identity = Identity::new(user).expect("an identity");
    let election = Election::builder(LEASE.0, LEASE.1).identity(identity).timing(timing).policy(policy);
    election.build(&cluster.config(user)).expect("an election")
}

/// Creates the objects that requests name.
async fn furnish(client: &Client) {
    define_widgets(client).await;
    for namespace in NAMESPACES {
        // One exists from the beginning.
        create(client, "/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await;
        for resource in ["pods", "configmaps", "secrets", "services", "events", "serviceaccounts"] {
            furnish_with(client, "", resource, Some(namespace)).await;
        }
        furnish_with(client, "apps", "deployments", Some(namespace)).await;
        furnish_with(client, "example.com", "widgets", Some(namespace)).await;
    }
    // For the tricks.
    furnish_with(client, "", "pods", Some("default")).await;
    furnish_with(client, "", "configmaps", Some("default")).await;
    furnish_with(client, "", "nodes", None).await;
    furnish_with(client, "rbac.authorization.k8s.io", "clusterroles", None).await;
}

async fn furnish_with(client: &Client, group: &str, resource: &str, namespace: Option<&str>) {
    let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
    let folder = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
    for name in NAMES.iter().filter(|name| resource == "clusterroles" || !name.contains(':')) {
        let object = object(group, resource, namespace.unwrap_or_default(), name);
        create(client, &format!("{root}{folder}/{resource}"), &object).await;
    }
}
