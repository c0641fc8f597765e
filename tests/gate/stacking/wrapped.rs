//! `Election::wrap`: a client that exists already keeps what it can do.

use super::stage::{Outcome, SOON, map, outcome, until, within};
use bytes::Bytes;
use futures_util::{AsyncBufReadExt, TryStreamExt, stream};
use http::{Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::{
    Api, Client, Config,
    api::{LogParams, PostParams, WatchEvent, WatchParams},
    client::Body,
};
use kube_leader_gate::{
    Election, Identity, Policy,
    policy::Preset,
    testing::{ApiServer, BoxError},
};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Notify,
    task::JoinSet,
};
use tower::ServiceExt;

/// The in-process server, and what it lacks: a log in two pieces, and exec that echoes.
struct Upstream {
    server: ApiServer,
    config: Config,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    /// Releases the second line of a log.
    more: Notify,
    upgrades: AtomicUsize,
}

impl Upstream {
    async fn start() -> Self {
        let (server, shared) = (ApiServer::new(), Arc::<Shared>::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.default_namespace = "team".into();
        config.auth_info.token = Some("a".into());
        let mut tasks = JoinSet::new();
        let (serving, state) = (server.clone(), shared.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (server, shared) = (serving.clone(), state.clone());
                let service = service_fn(move |request| answer(server.clone(), shared.clone(), request));
                connections.spawn(async move {
                    let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    let _ = http.with_upgrades().await;
                });
            }
        });
        Self { server, config, shared, _tasks: tasks }
    }

    fn client(&self) -> Client {
        Client::try_from(self.config.clone()).unwrap()
    }

    fn election(&self, policy: Policy) -> Election {
        let builder = Election::builder("team", "operator").identity(Identity::new("a").unwrap());
        builder.policy(policy).build(&self.config).unwrap()
    }
}

async fn answer(
    server: ApiServer,
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    if request.uri().path().ends_with("/log") {
        let lines = stream::unfold(0, move |count| {
            let shared = shared.clone();
            async move {
                if count == 1 {
                    shared.more.notified().await;
                }
                let line = Frame::data(Bytes::from(format!("line {count}\n")));
                (count < 2).then_some((Ok(line), count + 1))
            }
        });
        return Ok(Response::new(StreamBody::new(lines).boxed_unsync()));
    }
    if let Some(protocol) = request.headers().get(header::UPGRADE).cloned() {
        shared.upgrades.fetch_add(1, Ordering::Relaxed);
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.unwrap());
            let mut word = [0; 4];
            io.read_exact(&mut word).await.unwrap();
            io.write_all(&word).await.unwrap();
        });
        let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
        let response = response.header(header::CONNECTION, "Upgrade").header(header::UPGRADE, protocol);
        return Ok(response.body(Empty::new().map_err(|never| match never {}).boxed_unsync())?);
    }
    let response = server.service().oneshot(request).await?;
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// What `Api::exec` sends, and its answer.
async fn exec(client: &Client) -> Result<Response<Body>, kube_client::Error> {
    let request = Request::get("/api/v1/namespaces/team/pods/web/exec?command=cat&stdin=true&stdout=true")
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .body(Body::empty())
        .unwrap();
    within(SOON, "an answer", client.send(request)).await
}

/// Whether bytes go both ways.
async fn echoes(response: Response<Body>) {
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut io = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    io.write_all(b"word").await.unwrap();
    let mut word = [0; 4];
    within(SOON, "an echo", io.read_exact(&mut word)).await.unwrap();
    assert_eq!(&word, b"word");
}

#[tokio::test]
async fn wrapped_client_keeps_namespace_and_expiry() {
    let upstream = Upstream::start().await;
    let expiry = Some(Timestamp::UNIX_EPOCH);
    let election = upstream.election(Policy::strict());
    let client = election.wrap(upstream.client().with_valid_until(expiry));
    assert_eq!((client.default_namespace(), client.valid_until()), ("team", &expiry));

    let running = election.start();
    within(SOON, "the candidate leads", running.candidate().elected()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = maps.create(&PostParams::default(), &map("x")).await.unwrap();
    assert_eq!(made.metadata.namespace.as_deref(), Some("team"));
    assert!(upstream.server.object("/api/v1/namespaces/team/configmaps/x").is_some());
}

#[tokio::test]
async fn wrapped_client_of_follower_can_watch() {
    let upstream = Upstream::start().await;
    let client = upstream.election(Policy::strict()).wrap(upstream.client());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut events = pin!(maps.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap());
    let other: Api<ConfigMap> = Api::default_namespaced(upstream.client());
    other.create(&PostParams::default(), &map("x")).await.unwrap();
    let event = within(SOON, "an event", events.try_next()).await.unwrap();
    match event {
        Some(WatchEvent::Added(map)) => assert_eq!(map.metadata.name.as_deref(), Some("x")),
        other => panic!("not the map: {other:?}"),
    }
    // The same client, while it watches.
    assert_eq!(outcome(maps.create(&PostParams::default(), &map("y")).await), Outcome::NotLeader);
}

/// The first line arrives while the server still holds the second back.
#[tokio::test]
async fn wrapped_client_of_follower_streams_logs() {
    let upstream = Upstream::start().await;
    let client = upstream.election(Policy::strict()).wrap(upstream.client());
    let pods: Api<Pod> = Api::default_namespaced(client);
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines = pods.log_stream("web", &follow).await.unwrap().lines();
    assert_eq!(within(SOON, "a line", lines.try_next()).await.unwrap().as_deref(), Some("line 0"));
    upstream.shared.more.notify_one();
    assert_eq!(within(SOON, "a line", lines.try_next()).await.unwrap().as_deref(), Some("line 1"));
    assert_eq!(within(SOON, "the end", lines.try_next()).await.unwrap(), None);
}

#[tokio::test]
async fn wrapped_client_of_follower_needs_permission_for_exec() {
    let upstream = Upstream::start().await;
    let strict = upstream.election(Policy::strict()).wrap(upstream.client());
    let refused = exec(&strict).await;
    assert!(refused.as_ref().unwrap_err().to_string().contains("connect pods/exec \"web\""), "{refused:?}");
    assert_eq!(outcome(refused), Outcome::NotLeader);
    assert_eq!(upstream.shared.upgrades.load(Ordering::Relaxed), 0);

    let permitted = upstream.election(Policy::strict().allow(Preset::Exec)).wrap(upstream.client());
    echoes(exec(&permitted).await.unwrap()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(permitted);
    assert_eq!(outcome(maps.create(&PostParams::default(), &map("x")).await), Outcome::NotLeader);
}

/// A connection that was opened while leading is outside the gate: it stays open after a loss.
#[tokio::test]
async fn wrapped_client_of_leader_can_exec() {
    let upstream = Upstream::start().await;
    let election = upstream.election(Policy::strict());
    let client = election.wrap(upstream.client());
    let running = election.start();
    within(SOON, "the candidate leads", running.candidate().elected()).await;
    let open = exec(&client).await.unwrap();
    upstream
        .server
        .edit("outsider", "/apis/coordination.k8s.io/v1/namespaces/team/leases/operator", |lease| {
            lease["spec"]["holderIdentity"] = "outsider".into();
        })
        .unwrap();
    until("the candidate follows", || !running.candidate().can_write()).await;
    echoes(open).await;
    assert_eq!(outcome(exec(&client).await), Outcome::NotLeader);
}
