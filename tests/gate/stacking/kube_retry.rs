//! kube 5's own retry layer is inside every layer that `with_layer` adds. Over real sockets, in real time.

use super::stage::{Outcome, SOON, arrived, ended, map, outcome, steal, until, within};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client, Config,
    api::PostParams,
    client::{Body, ClientBuilder},
};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::Running,
    testing::{ApiServer, Endpoint, Fault},
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tower::util::MapRequestLayer;

pub struct Scene {
    pub server: ApiServer,
    pub running: Running,
    pub maps: Api<ConfigMap>,
    _endpoint: Endpoint,
}

impl Scene {
    /// A leader whose workload has the client that `client` makes.
    pub async fn leading(client: impl FnOnce(&Election, Config) -> Client) -> Self {
        let server = ApiServer::new();
        let endpoint = server.serve().await.unwrap();
        let election = Election::builder("default", "operator")
            .identity(Identity::new("a").unwrap())
            .timing(LeaseTiming::fast())
            .build(&endpoint.config("a"))
            .unwrap();
        let maps = Api::default_namespaced(client(&election, endpoint.config("a")));
        let running = election.start();
        within(SOON, "the candidate leads", running.candidate().elected()).await;
        Self { server, running, maps, _endpoint: endpoint }
    }

    pub async fn write(&self, name: &str) -> Outcome {
        let create = async { self.maps.create(&PostParams::default(), &map(name)).await };
        outcome(within(SOON, "the write ends", create).await)
    }
}

/// kube's stack, a layer that counts requests, and the gate.
async fn counted(retries: bool) -> (Scene, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counting = count.clone();
    let counter = MapRequestLayer::new(move |request: Request<Body>| {
        counting.fetch_add(1, Ordering::Relaxed);
        request
    });
    let scene = Scene::leading(|election, mut config| {
        config.default_retry = retries;
        let builder = ClientBuilder::try_from((config, election.connections())).unwrap();
        builder.with_layer(&counter).with_layer(&election.layer()).build()
    })
    .await;
    (scene, count)
}

#[tokio::test]
async fn kube_retry_is_inside_every_added_layer() {
    let (scene, count) = counted(true).await;
    let _fault = scene.server.inject(Fault::status(504).resource("configmaps").times(4));
    assert_eq!(scene.write("x").await, Outcome::Done);
    // The gate admitted one write, and the server received the create five times.
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let statuses = arrived(&scene.server).iter().map(|write| write.status).collect::<Vec<_>>();
    assert_eq!(statuses, [504, 504, 504, 504, 201]);
}

#[tokio::test]
async fn kube_retry_can_be_switched_off() {
    let (scene, count) = counted(false).await;
    let _fault = scene.server.inject(Fault::status(504).resource("configmaps"));
    assert_eq!(scene.write("x").await, Outcome::Status(504));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert_eq!(arrived(&scene.server).len(), 1);
}

#[tokio::test]
async fn s2_kube_retry_sends_nothing_after_loss() {
    let (scene, _) = counted(true).await;
    // The next attempt would come long after the loss.
    let again = Fault::status_retry_after(503, SOON * 10).resource("configmaps");
    let _fault = scene.server.inject(again);
    let maps = scene.maps.clone();
    let writing = tokio::spawn(async move { outcome(maps.create(&PostParams::default(), &map("x")).await) });
    until("it has been tried", || arrived(&scene.server).first().is_some_and(|it| it.completed.is_some()))
        .await;
    steal(&scene.server);
    assert_eq!(ended(writing).await, Outcome::LeadershipLost);
    assert_eq!(scene.running.candidate().leadership().writes_under_way(), 0);
    assert_eq!(arrived(&scene.server).len(), 1);
}
