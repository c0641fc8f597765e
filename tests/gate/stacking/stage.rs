//! A leader over the in-process API server, with layers of a test's choice between its client and the server.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client,
    api::{ListParams, PostParams},
    client::ClientBuilder,
};
use kube_leader_gate::{
    Election, ErrLeadershipLost, ErrNotLeader, Identity, LeaseTiming,
    election::Running,
    lease::LeasePool,
    testing::{ApiServer, ApiService, TokioClock, WriteRecord},
};
use serde_json::{Value, json};
use std::{error::Error, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

pub use test_support::wait::within;

pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";
/// Long enough for anything that does not wait for an expiry.
pub const SOON: Duration = Duration::from_secs(30);

/// The outcome of a write, as its caller sees it.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// `ErrNotLeader`: nothing was sent.
    NotLeader,
    /// `ErrLeadershipLost`: unknown.
    LeadershipLost,
    /// tower's timeout: unknown.
    Elapsed,
    /// The server, or a layer on its behalf, has refused.
    Status(u16),
}

pub type Writing = JoinHandle<Outcome>;
pub type Builder = ClientBuilder<ApiService>;

/// A candidate that leads, and its workload's client.
pub struct Scene {
    pub server: ApiServer,
    pub running: Running,
    pub maps: Api<ConfigMap>,
}

impl Scene {
    /// In paused time, straight to the server; `stack` puts its layers around the gate.
    pub async fn leading(stack: impl FnOnce(Builder, &Election) -> Client) -> Self {
        let scene = Self::new(ApiServer::new(), stack);
        within(SOON, "the candidate leads", scene.running.candidate().elected()).await;
        scene
    }

    /// The same with another holder in the lease, for an hour.
    pub async fn following(stack: impl FnOnce(Builder, &Election) -> Client) -> Self {
        let server = ApiServer::new();
        let spec =
            json!({ "holderIdentity": "outsider", "leaseDurationSeconds": 3600, "leaseTransitions": 7 });
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                            "metadata": { "name": "operator", "namespace": "default" }, "spec": spec });
        server.put("outsider", LEASE, lease).unwrap();
        let scene = Self::new(server, stack);
        until("the candidate knows the holder", || scene.running.candidate().holder().is_some()).await;
        scene
    }

    fn new(server: ApiServer, stack: impl FnOnce(Builder, &Election) -> Client) -> Self {
        let service = server.service().user("a");
        let connect = {
            let service = service.clone();
            move || Ok(Client::new(service.clone(), "default"))
        };
        let election = Election::builder("default", "operator")
            .identity(Identity::new("a").unwrap())
            .timing(LeaseTiming::fast())
            .clock(Arc::new(TokioClock::new()))
            .build_in(&LeasePool::over(connect).expect("a client"))
            .unwrap();
        let client = stack(ClientBuilder::new(service, "default"), &election);
        Self { server, maps: Api::default_namespaced(client), running: election.start() }
    }

    /// Sends a write from a task of its own.
    pub fn write(&self, name: &str) -> Writing {
        let (maps, map) = (self.maps.clone(), map(name));
        tokio::spawn(async move { outcome(maps.create(&PostParams::default(), &map).await) })
    }

    pub async fn read(&self) {
        self.maps.list(&ListParams::default()).await.expect("reads pass");
    }

    pub fn steal(&self) {
        steal(&self.server);
    }

    pub fn arrived(&self) -> Vec<WriteRecord> {
        arrived(&self.server)
    }

    /// Whether a write of this name is on the server, answered or not.
    pub fn stands(&self, name: &str) -> bool {
        self.server.object(&format!("/api/v1/namespaces/default/configmaps/{name}")).is_some()
    }

    /// Waits until this many writes have reached the server.
    pub async fn have_arrived(&self, count: usize) {
        until("they have arrived", || self.arrived().len() >= count).await;
    }

    pub fn under_way(&self) -> usize {
        self.running.candidate().leadership().writes_under_way()
    }
}

pub fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube_client::core::ObjectMeta { name: Some(name.into()), ..Default::default() },
        ..ConfigMap::default()
    }
}

/// Another holder takes the lease, for an hour.
pub fn steal(server: &ApiServer) {
    hold(server, 3600);
}

/// Another holder takes the lease, for this many seconds.
pub fn hold(server: &ApiServer, seconds: u32) {
    let edit = |lease: &mut Value| {
        lease["spec"]["holderIdentity"] = "outsider".into();
        lease["spec"]["leaseDurationSeconds"] = seconds.into();
        lease["spec"]["leaseTransitions"] = 7.into();
    };
    server.edit("outsider", LEASE, edit).expect("the lease is there");
}

/// The workload's writes that have reached the server.
pub fn arrived(server: &ApiServer) -> Vec<WriteRecord> {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "configmaps");
    log
}

pub fn outcome<T>(result: Result<T, kube_client::Error>) -> Outcome {
    let Err(error) = result else { return Outcome::Done };
    match error {
        error if ErrNotLeader::find(&error).is_some() => Outcome::NotLeader,
        error if ErrLeadershipLost::find(&error).is_some() => Outcome::LeadershipLost,
        kube_client::Error::Api(status) => Outcome::Status(status.code),
        error if is_elapsed(&error) => Outcome::Elapsed,
        error => panic!("{error:?}"),
    }
}

fn is_elapsed(error: &kube_client::Error) -> bool {
    let kube_client::Error::Service(error) = error else { return false };
    let error: &(dyn Error + 'static) = &**error;
    error.is::<tower::timeout::error::Elapsed>()
}

/// The outcome of a write that must have one soon.
pub async fn ended(writing: Writing) -> Outcome {
    within(SOON, "the write ends", writing).await.expect("it does not panic")
}

/// Waits until `condition` holds.
pub async fn until(what: &str, condition: impl FnMut() -> bool) {
    test_support::wait::until(SOON, what, condition).await;
}

/// Lets paused time pass.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
