//! A namespace of the real API server, with replicas and their user.

use crate::{
    apiserver::{self, Cluster},
    operator::{Greeting, NAME},
    operators::process::{Replica, kubeconfig},
    report::Report,
    support::PATIENCE,
    user::User,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::ListParams};
use kube_leader_gate::testing::WriteRecord;
use std::time::Duration;
use test_support::assert_safety;
use test_support::harness::say;
use tokio::time::{sleep, timeout};

pub struct World {
    pub cluster: &'static Cluster,
    pub namespace: String,
    /// Oldest first.
    pub replicas: Vec<Replica>,
    options: Vec<&'static str>,
    leases: Api<Lease>,
    /// All replicas that ever ran. Each is a user of its own.
    names: Vec<String>,
}

impl World {
    pub async fn new(mode: &'static str) -> Self {
        let cluster = apiserver::shared().await;
        let namespace = cluster.namespace().await;
        let leases = Api::namespaced(cluster.client("admin"), &namespace);
        let options = vec!["--cluster", "--fast", "--mode", mode];
        Self { cluster, namespace, replicas: Vec::new(), options, leases, names: Vec::new() }
    }

    /// Three replicas, one of which leads.
    pub async fn with_replicas(mode: &'static str) -> Self {
        let mut world = Self::new(mode).await;
        for _ in 0..3 {
            world.start_new();
        }
        world.leader().await;
        kind_is_served(&world.client()).await;
        world
    }

    pub fn user(&self) -> User {
        User::new(self.client())
    }

    fn client(&self) -> Client {
        admin_of(self.cluster, &self.namespace)
    }

    /// A replica with a new name.
    pub fn start_new(&mut self) {
        let name = format!("candidate-{}", self.names.len());
        self.names.push(name.clone());
        self.start(&name);
    }

    pub fn start(&mut self, name: &str) {
        let (token, ca) = (Cluster::token(name), self.cluster.ca());
        let kubeconfig = kubeconfig(&self.cluster.url(), &ca, &token, &self.namespace);
        self.replicas.push(Replica::start(name, &kubeconfig, &self.options));
    }

    /// Removes the leader from the replicas.
    pub async fn take_leader(&mut self) -> Replica {
        let leader = self.leader().await;
        let index = self.replicas.iter().position(|it| it.name == leader).expect("one that runs leads");
        self.replicas.remove(index)
    }

    /// The holder of the lease, once a running replica holds it.
    pub async fn leader(&self) -> String {
        leader_among(&self.leases, &self.replicas).await
    }

    pub fn logs(&self) -> String {
        logs(&self.replicas)
    }

    /// The writes in this namespace.
    pub fn writes(&self) -> Vec<WriteRecord> {
        let mut log = self.cluster.write_log();
        log.retain(|it| it.namespace.as_ref() == Some(&self.namespace));
        log
    }

    /// Checks in the audit log that no replica wrote without leading.
    pub fn judged(&self) -> Report {
        let report = Report::new(&self.namespace, &self.names, &self.writes());
        say(&report);
        assert_safety!(report.strays.is_empty(), "written without leading: {:#?}", report.strays);
        report
    }
}

/// A client of an administrator who works in this namespace.
pub fn admin_of(cluster: &Cluster, namespace: &str) -> Client {
    let mut config = cluster.config("admin");
    namespace.clone_into(&mut config.default_namespace);
    Client::try_from(config).expect("a client")
}

/// The holder of the lease, once one of these replicas holds it.
pub async fn leader_among(leases: &Api<Lease>, replicas: &[Replica]) -> String {
    let holder = async {
        loop {
            let lease = leases.get_opt(NAME).await.expect("an answer");
            let holder = lease.and_then(|it| it.spec?.holder_identity).unwrap_or_default();
            if replicas.iter().any(|it| it.name == holder) {
                return holder;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, holder).await.unwrap_or_else(|_| panic!("no replica leads: {}", logs(replicas)))
}

fn logs(replicas: &[Replica]) -> String {
    let logs = replicas.iter().map(|it| format!("{}:\n{}", it.name, it.log()));
    logs.collect::<Vec<_>>().join("\n")
}

/// Waits until the operator has applied its kind.
pub async fn kind_is_served(client: &Client) {
    let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
    let served = async {
        while greetings.list(&ListParams::default()).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, served).await.expect("the kind");
}
