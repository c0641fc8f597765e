//! Where the demo plays: a Lease and a `ConfigMap` of its own, on the in-process API server or in a cluster.

use crate::{Failure, chain, proxy::Proxy, witness::Witness, workload::Pace};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube_client::{
    Api, Client, Config, Error,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_leader_gate::{
    LeaseTiming,
    testing::{ApiServer, Endpoint, WriteRecord},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Who steals the lease.
pub const OUTSIDER: &str = "outsider";
/// The longest that making and deleting two objects takes when nothing is wrong.
const PATIENCE: Duration = Duration::from_secs(15);

pub struct Stage {
    pub namespace: String,
    /// The name of both objects.
    pub object: String,
    pub timing: LeaseTiming,
    /// Where the demo plays, in words.
    pub place: String,
    /// What evidence the verdict uses, in words.
    pub evidence: &'static str,
    pace: Pace,
    leases: Api<Lease>,
    objects: Api<ConfigMap>,
    world: World,
}

enum World {
    Local { server: ApiServer, endpoint: Endpoint, _side_door: Endpoint },
    Cluster(Box<Cluster>),
}

struct Cluster {
    config: Config,
    /// `None` where the demo cannot cut the replicas off.
    line: Option<Proxy>,
    /// None until there is something to watch.
    witness: Option<Witness>,
}

/// What a replica needs to know.
#[derive(Clone)]
pub struct Role {
    pub name: &'static str,
    pub config: Config,
    pub namespace: String,
    pub object: String,
    pub timing: LeaseTiming,
    pub pace: Pace,
}

impl Stage {
    /// The in-process API server, over real HTTP on loopback ports.
    pub async fn local() -> Result<Self, Failure> {
        let server = ApiServer::new();
        let endpoint = server.serve().await?;
        let side_door = server.serve().await?;
        let config = side_door.config(OUTSIDER);
        let stage = Self {
            timing: LeaseTiming::new(
                Duration::from_secs(3),
                Duration::from_secs(2),
                Duration::from_millis(400),
            )?,
            place: format!("in-process API server, port {}", endpoint.addr().port()),
            evidence: "the server's write log",
            pace: Pace { read: Duration::from_millis(10), write: Duration::from_millis(4) },
            ..Self::over(config, World::Local { server, endpoint, _side_door: side_door })?
        };
        stage.set_up().await
    }

    /// The cluster of the current kubeconfig.
    pub async fn cluster() -> Result<Self, Failure> {
        let config = Config::infer().await?;
        let (line, host) = (Proxy::before(&config).await?, config.cluster_url.host().unwrap_or_default());
        let world = World::Cluster(Box::new(Cluster { config: config.clone(), line, witness: None }));
        let mut stage = Self {
            // Time for TLS and a network.
            timing: LeaseTiming::new(
                Duration::from_secs(6),
                Duration::from_secs(4),
                Duration::from_millis(800),
            )?,
            place: format!("{host}, namespace {}", config.default_namespace),
            evidence: "an independent watch of both objects, in the order of their resource versions",
            pace: Pace { read: Duration::from_millis(50), write: Duration::from_millis(25) },
            ..Self::over(config, world)?
        };
        stage = stage.set_up().await?;
        match Witness::new(stage.leases.clone(), stage.objects.clone(), &stage.object).await {
            Ok(witness) => {
                if let World::Cluster(cluster) = &mut stage.world {
                    cluster.witness = Some(witness);
                }
                Ok(stage)
            }
            Err(error) => {
                stage.clean_up().await?;
                Err(error)
            }
        }
    }

    fn over(config: Config, world: World) -> Result<Self, Failure> {
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config)?;
        Ok(Self {
            leases: Api::namespaced(client.clone(), &namespace),
            objects: Api::namespaced(client, &namespace),
            namespace,
            object: String::new(),
            timing: LeaseTiming::default(),
            place: String::new(),
            evidence: "",
            pace: Pace { read: Duration::MAX, write: Duration::MAX },
            world,
        })
    }

    /// Makes the objects. The server chooses the name, so that no other client uses it.
    async fn set_up(mut self) -> Result<Self, Failure> {
        let made = timeout(PATIENCE, async {
            let named =
                json!({ "metadata": { "generateName": "kube-leader-gate-demo-", "labels": labels() } });
            let params = PostParams::default();
            let object = self.objects.create(&params, &serde_json::from_value(named)?).await?;
            self.object = object.metadata.name.unwrap_or_default();
            let lease = json!({ "metadata": { "name": self.object, "labels": labels() } });
            if let Err(error) = self.leases.create(&params, &serde_json::from_value(lease)?).await {
                self.objects.delete(&self.object, &DeleteParams::default()).await?;
                return Err(Failure::from(error));
            }
            Ok(())
        });
        match made.await {
            Ok(Ok(())) => Ok(self),
            Ok(Err(error)) => Err(format!("{}: {}", self.place, chain(&*error)).into()),
            Err(_) => Err(format!("{} does not answer", self.place).into()),
        }
    }

    /// What a replica of this name needs.
    pub fn role(&self, name: &'static str) -> Role {
        let config = match &self.world {
            World::Local { endpoint, .. } => endpoint.config(name),
            World::Cluster(cluster) => match &cluster.line {
                Some(line) => line.config(&cluster.config),
                None => cluster.config.clone(),
            },
        };
        Role {
            name,
            config,
            namespace: self.namespace.clone(),
            object: self.object.clone(),
            timing: self.timing,
            pace: self.pace,
        }
    }

    /// Writes an outsider into the lease, even if a replica holds it.
    pub async fn steal(&self) -> Result<(), Failure> {
        let spec = self.leases.get(&self.object).await?.spec.unwrap_or_default();
        let now = MicroTime(Timestamp::now());
        let theft = json!({ "spec": {
            "holderIdentity": OUTSIDER,
            "leaseDurationSeconds": self.timing.lease_duration().as_secs(),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": spec.lease_transitions.unwrap_or_default() + 1,
        } });
        self.patch_lease(theft).await
    }

    pub async fn delete_lease(&self) -> Result<(), Failure> {
        self.leases.delete(&self.object, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Labels the lease again: a replica has made it anew.
    pub async fn label_lease(&self) -> Result<(), Failure> {
        self.patch_lease(json!({ "metadata": { "labels": labels() } })).await
    }

    async fn patch_lease(&self, patch: Value) -> Result<(), Failure> {
        self.leases.patch(&self.object, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Cuts the replicas off from the API, or reconnects them. Returns false where that is not possible.
    pub async fn cut_off(&self, cut: bool) -> bool {
        match &self.world {
            World::Local { endpoint, .. } if cut => endpoint.pause().await,
            World::Local { endpoint, .. } => endpoint.resume().await,
            World::Cluster(cluster) => match &cluster.line {
                Some(line) => line.cut(cut),
                None => return false,
            },
        }
        true
    }

    /// Every write that the server has seen.
    pub async fn write_log(&self) -> Result<Vec<WriteRecord>, Failure> {
        match &self.world {
            World::Local { server, .. } => Ok(server.write_log()),
            World::Cluster(cluster) => match &cluster.witness {
                Some(witness) => witness.write_log().await,
                None => Ok(Vec::new()),
            },
        }
    }

    /// Deletes both objects.
    pub async fn clean_up(&self) -> Result<(), Failure> {
        let params = DeleteParams::default();
        let deleted = timeout(PATIENCE, async {
            gone(self.leases.delete(&self.object, &params).await.map(drop))?;
            gone(self.objects.delete(&self.object, &params).await.map(drop))
        });
        let outcome = deleted.await.map_err(|_| "no answer in time".to_owned());
        outcome.and_then(|it| it.map_err(|error| error.to_string())).map_err(|error| {
            format!(
                "Lease and ConfigMap {} in namespace {} may be left over: {error}",
                self.object, self.namespace
            )
            .into()
        })
    }
}

fn labels() -> Value {
    json!({ "app.kubernetes.io/managed-by": "kube-leader-gate-demo" })
}

/// What is gone already need not be deleted.
fn gone(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}
