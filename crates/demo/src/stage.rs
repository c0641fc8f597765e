//! Where the demo plays: a Lease and a `ConfigMap` on the in-process API server, over real HTTP on loopback.

use crate::{Failure, workload::Pace};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube_client::{
    Api, Client, Config,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_leader_gate::{
    LeaseTiming,
    testing::{ApiServer, Endpoint, WriteRecord},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Who steals the lease.
pub const OUTSIDER: &str = "outsider";
/// The name of both objects.
const NAME: &str = "demo";

pub struct Stage {
    pub namespace: String,
    /// The name of both objects.
    pub object: &'static str,
    pub timing: LeaseTiming,
    /// Where the demo plays, in words.
    pub place: String,
    leases: Api<Lease>,
    server: ApiServer,
    /// For the replicas. An outage closes it.
    endpoint: Endpoint,
    /// For the outsider.
    _side_door: Endpoint,
}

/// What a replica needs to know.
#[derive(Clone)]
pub struct Role {
    pub name: &'static str,
    pub config: Config,
    pub namespace: String,
    pub object: &'static str,
    pub timing: LeaseTiming,
    pub pace: Pace,
}

impl Stage {
    /// Starts the API server, and makes the `ConfigMap` that the replicas write.
    pub async fn new() -> Result<Self, Failure> {
        let server = ApiServer::new();
        let endpoint = server.serve().await?;
        let side_door = server.serve().await?;
        let config = side_door.config(OUTSIDER);
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config)?;
        let object = serde_json::from_value(json!({ "metadata": { "name": NAME } }))?;
        Api::<ConfigMap>::namespaced(client.clone(), &namespace)
            .create(&PostParams::default(), &object)
            .await?;
        Ok(Self {
            object: NAME,
            // The shortest lease that leaves a busy machine its time.
            timing: LeaseTiming::new(
                Duration::from_secs(2),
                Duration::from_millis(1400),
                Duration::from_millis(300),
            )?,
            place: format!("in-process API server, port {}", endpoint.addr().port()),
            leases: Api::namespaced(client, &namespace),
            namespace,
            server,
            endpoint,
            _side_door: side_door,
        })
    }

    /// What a replica of this name needs.
    pub fn role(&self, name: &'static str) -> Role {
        Role {
            name,
            config: self.endpoint.config(name),
            namespace: self.namespace.clone(),
            object: self.object,
            timing: self.timing,
            pace: Pace { read: Duration::from_millis(10), write: Duration::from_millis(4) },
        }
    }

    /// Writes an outsider into the lease, even if a replica holds it.
    pub async fn steal(&self) -> Result<(), Failure> {
        let spec = self.leases.get(self.object).await?.spec.unwrap_or_default();
        let now = MicroTime(Timestamp::now());
        let theft: Value = json!({ "spec": {
            "holderIdentity": OUTSIDER,
            "leaseDurationSeconds": self.timing.lease_duration().as_secs(),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": spec.lease_transitions.unwrap_or_default() + 1,
        } });
        self.leases.patch(self.object, &PatchParams::default(), &Patch::Merge(theft)).await?;
        Ok(())
    }

    pub async fn delete_lease(&self) -> Result<(), Failure> {
        self.leases.delete(self.object, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Cuts the replicas off from the API.
    pub async fn cut_off(&self) {
        self.endpoint.pause().await;
    }

    /// Reconnects the replicas.
    pub async fn reconnect(&self) {
        self.endpoint.resume().await;
    }

    /// Every write that the server has seen.
    pub fn write_log(&self) -> Vec<WriteRecord> {
        self.server.write_log()
    }
}
