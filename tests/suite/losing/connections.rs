//! What hyper's connection tasks may still send when a term is over.

use crate::support::{free, leads_by, spec, until, within};
use http::{Request, Uri};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    client::{Body, ClientBuilder},
};
use kube_leader_gate::{
    Election, ErrLeadershipLost, Identity, LeaseTiming,
    election::{LeaseEnd, Running},
    testing::{ApiServer, Endpoint, Fault, ManualClock},
};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, yield_now},
};

const PATIENCE: Duration = Duration::from_secs(30);

struct Scene {
    server: ApiServer,
    endpoint: Endpoint,
    clock: Arc<ManualClock>,
}

impl Scene {
    async fn new() -> Self {
        let server = ApiServer::new();
        free(&server);
        let endpoint = server.serve().await.unwrap();
        Self { server, endpoint, clock: Arc::new(ManualClock::new()) }
    }

    /// A leader, and the client that `make` makes for its workload. A connection is open.
    async fn leading(&self, make: impl Fn(&Election, Config) -> Client) -> (Running, Api<ConfigMap>) {
        let election = Election::builder("default", "operator")
            .identity(Identity::new("a").unwrap())
            .timing(LeaseTiming::fast())
            .clock(self.clock.clone())
            .build(&self.endpoint.config("a"))
            .unwrap();
        let maps = Api::default_namespaced(make(&election, self.endpoint.config("a")));
        let running = election.start();
        leads_by(&self.clock, PATIENCE, running.candidate()).await;
        maps.list(&ListParams::default()).await.unwrap();
        (running, maps)
    }

    /// Freezes the process just after the gate has handed a write to hyper, and wakes it after the deadline. The server
    /// then sees the write, or it does not.
    async fn freeze_in_between(&self, running: &Running, maps: &Api<ConfigMap>, sends: bool) {
        let map = ConfigMap::default();
        let params = PostParams::default();
        let mut write = pin!(maps.create(&params, &map));
        // In one thread: up to here only this task and the client's buffer have run.
        while running.candidate().leadership().writes_under_way() == 0 {
            assert!(futures_util::poll!(write.as_mut()).is_pending());
            yield_now().await;
        }
        // This poll passes the gate.
        assert!(futures_util::poll!(write.as_mut()).is_pending());
        self.clock.advance(LeaseTiming::fast().renew_deadline() + Duration::from_secs(1));
        // The connection's task runs first, then the server's, over a real socket.
        for _ in 0..1_000 {
            yield_now().await;
        }
        let is_seen = || self.server.write_log().iter().any(|it| it.resource == "configmaps");
        if sends {
            until(PATIENCE, "the server sees the write", is_seen).await;
        }
        let error = within(PATIENCE, "the write is cut off", write).await.unwrap_err();
        assert!(ErrLeadershipLost::find(&error).is_some(), "{error}");
        assert_eq!(is_seen(), sends);
    }
}

#[tokio::test]
async fn s2_frozen_connection_sends_nothing_after_deadline() {
    let scene = Scene::new().await;
    let (running, maps) = scene.leading(|election, config| election.client(&config).unwrap()).await;
    scene.freeze_in_between(&running, &maps, false).await;
    // The client recovers: the next request gets a new connection.
    maps.list(&ListParams::default()).await.unwrap();
}

/// A client with its own connections cannot prevent this. The test also shows that the one above can fail.
#[tokio::test]
async fn client_with_own_connections_still_sends_after_deadline() {
    let scene = Scene::new().await;
    let plain = |election: &Election, config| {
        ClientBuilder::try_from(config).unwrap().with_layer(&election.layer()).build()
    };
    let (running, maps) = scene.leading(plain).await;
    scene.freeze_in_between(&running, &maps, true).await;
}

#[tokio::test]
async fn lost_term_closes_connections_but_release_does_not() {
    let scene = Scene::new().await;
    let (running, maps) = scene.leading(|election, config| election.client(&config).unwrap()).await;
    let read = || {
        let maps = maps.clone();
        tokio::spawn(async move { maps.list(&ListParams::default()).await.map(drop) })
    };
    let hang = scene.server.inject(Fault::hang_before().verb("list"));
    let reading = read();
    until(PATIENCE, "the read is under way", || hang.hits() == 1).await;
    scene.clock.advance(LeaseTiming::fast().renew_deadline());
    within(PATIENCE, "the read ends", reading).await.unwrap().expect_err("its connection was closed");
    drop(hang);

    within(PATIENCE, "the candidate leads again", running.candidate().elected()).await;
    let delay = scene.server.inject(Fault::delay_before(Duration::from_millis(200)).verb("list"));
    let reading = read();
    until(PATIENCE, "the read is under way", || delay.hits() == 1).await;
    running.stop().await;
    within(PATIENCE, "the read ends", reading).await.unwrap().expect("its connection went on");
}

/// More than all sockets on the way can hold.
const UPLOAD: usize = 32 << 20;

/// A backend that answers an upload at once. It reads the rest only when it is told, and returns how much came.
async fn hasty(told: oneshot::Receiver<()>) -> (Uri, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let backend = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while !read.windows(4).any(|it| it == b"\r\n\r\n") {
            stream.read_buf(&mut read).await.unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        told.await.unwrap();
        let head = read.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        let mut length = read.len() - head;
        let mut rest = vec![0; 1 << 20];
        while length < UPLOAD
            && let Ok(more @ 1..) = stream.read(&mut rest).await
        {
            length += more;
        }
        length
    });
    (url, backend)
}

/// Sends an upload through `proxy`. The answer comes before the upload has left.
async fn upload(scene: &Scene, url: Uri) -> (Running, Client) {
    let config = Config::new(url);
    let election = Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .timing(LeaseTiming::fast())
        .clock(scene.clock.clone())
        .build(&scene.endpoint.config("a"))
        .unwrap();
    let client = election.client(&config).unwrap();
    let running = election.start();
    leads_by(&scene.clock, PATIENCE, running.candidate()).await;
    let path = "/api/v1/namespaces/a/services/b/proxy/upload";
    let request = Request::post(path).body(Body::from(vec![b'x'; UPLOAD])).unwrap();
    let answer = within(PATIENCE, "the answer", client.send(request)).await.unwrap();
    assert_eq!((answer.status().as_u16(), running.candidate().leadership().writes_under_way()), (200, 1));
    (running, client)
}

#[tokio::test]
async fn s4_release_waits_for_upload_behind_its_answer() {
    let scene = Scene::new().await;
    let (tell, told) = oneshot::channel();
    let (url, backend) = hasty(told).await;
    let (running, _client) = upload(&scene, url).await;
    let candidate = running.candidate().clone();
    let stopping = tokio::spawn(running.stop());
    until(PATIENCE, "the gate is closed", || !candidate.can_write()).await;
    assert_eq!(spec(&scene.server)["holderIdentity"], "a");
    tell.send(()).unwrap();
    assert_eq!(within(PATIENCE, "the upload arrives", backend).await.unwrap(), UPLOAD);
    until(PATIENCE, "the upload is over", || candidate.leadership().writes_under_way() == 0).await;
    // What the connection has copied may be late.
    assert_eq!(spec(&scene.server)["holderIdentity"], "a");
    scene.clock.advance(LeaseTiming::fast().safety_margin());
    assert_eq!(within(PATIENCE, "it stops", stopping).await.unwrap(), LeaseEnd::Released);
}

#[tokio::test]
async fn s2_loss_cuts_off_upload_behind_its_answer() {
    let scene = Scene::new().await;
    let (tell, told) = oneshot::channel();
    let (url, backend) = hasty(told).await;
    let (running, _client) = upload(&scene, url).await;
    scene.clock.advance(LeaseTiming::fast().renew_deadline());
    until(PATIENCE, "the upload is cut off", || running.candidate().leadership().writes_under_way() == 0)
        .await;
    tell.send(()).unwrap();
    assert!(within(PATIENCE, "the connection ends", backend).await.unwrap() < UPLOAD);
}
