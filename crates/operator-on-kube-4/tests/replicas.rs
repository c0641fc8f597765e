//! Replicas whose clients are kube 4's, over real HTTP to the in-process API server.

use http::Request;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, Error,
    api::{ListParams, PostParams},
    client::Body,
    runtime::{Controller, reflector, watcher},
};
use kube_leader_gate::{
    Election, ErrLeadershipLost, ErrNotLeader, Identity, LeaseTiming,
    election::{ElectionBuilder, Running},
    testing::{ApiServer, Endpoint, ManualClock},
};
use marker::{caught_up::open_when_caught_up, client, operator};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use test_support::wait::{until, within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::TcpListener,
    task::yield_now,
};
use tower::service_fn;

const PATIENCE: Duration = Duration::from_secs(60);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How a replica makes its client.
type Way = fn(&Election, &Endpoint, &str) -> Client;

fn through_kube_client_5(election: &Election, endpoint: &Endpoint, user: &str) -> Client {
    client::through_kube_client_5(election, &endpoint.config(user)).unwrap()
}

fn through_own_kube(election: &Election, endpoint: &Endpoint, user: &str) -> Client {
    let mut config = Config::new(endpoint.uri().parse().unwrap());
    config.auth_info.token = Some(user.into());
    client::through_own_kube(election, config).unwrap()
}

fn builder(user: &str) -> ElectionBuilder {
    Election::builder("default", operator::NAME)
        .identity(Identity::new(user).unwrap())
        .timing(LeaseTiming::fast())
}

fn replica(endpoint: &Endpoint, user: &str, way: Way) -> (Running, Client) {
    let election = builder(user).build(&endpoint.config(user)).unwrap();
    let client = way(&election, endpoint, user);
    (election.start(), client)
}

async fn leads(replica: &Running) {
    within(PATIENCE, "the candidate leads", replica.candidate().elected()).await;
}

async fn write(client: &Client, name: &str) -> Result<ConfigMap, Error> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &map).await
}

async fn read(client: &Client) -> usize {
    Api::<ConfigMap>::default_namespaced(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .len()
}

/// Both replicas read. The follower's write is rejected as kube passes on an error of a layer, and the leader's lands.
/// After a handover, the other one leads.
async fn roles_follow_the_lease(way: Way) {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let (a, client_of_a) = replica(&endpoint, "a", way);
    leads(&a).await;
    let (b, client_of_b) = replica(&endpoint, "b", way);

    write(&client_of_a, "first").await.unwrap();
    let error = write(&client_of_b, "second").await.unwrap_err();
    assert!(matches!(error, Error::Service(_)), "{error:?}");
    let refused = ErrNotLeader::find(&error).expect("the gate's error").attempt();
    assert_eq!(refused.request().expect("a request").resource(), "configmaps");
    assert_eq!((read(&client_of_a).await, read(&client_of_b).await), (1, 1));

    a.stop().await;
    leads(&b).await;
    write(&client_of_b, "second").await.unwrap();
    let error = write(&client_of_a, "third").await.unwrap_err();
    assert!(ErrNotLeader::find(&error).is_some(), "{error}");
    assert_eq!((read(&client_of_a).await, read(&client_of_b).await), (2, 2));
}

#[tokio::test]
async fn roles_follow_the_lease_through_kube_client_5() {
    roles_follow_the_lease(through_kube_client_5).await;
}

#[tokio::test]
async fn roles_follow_the_lease_through_own_kube() {
    roles_follow_the_lease(through_own_kube).await;
}

/// Freezes the process just after the gate has handed a write on, and wakes it after the deadline. The server then sees
/// the write, or it does not.
async fn freeze_in_between(way: Way, sends: bool) {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let clock = Arc::new(ManualClock::new());
    let election = builder("a").clock(clock.clone()).build(&endpoint.config("a")).unwrap();
    let client = way(&election, &endpoint, "a");
    let running = election.start();
    // A candidate that finds no lease waits before it creates one.
    let waiting = async {
        loop {
            clock.advance(Duration::from_millis(100));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = leads(&running) => {}
        () = waiting => {}
    }
    assert_eq!(read(&client).await, 0, "a connection is open");

    let mut write = pin!(write(&client, "late"));
    // In one thread: up to here only this task and the client's buffers have run.
    while running.candidate().leadership().writes_under_way() == 0 {
        assert!(futures_util::poll!(write.as_mut()).is_pending());
        yield_now().await;
    }
    // This poll passes the gate.
    assert!(futures_util::poll!(write.as_mut()).is_pending());
    clock.advance(LeaseTiming::fast().renew_deadline() + Duration::from_secs(1));
    // The connection's task runs first, then the server's, over a real socket.
    for _ in 0..1_000 {
        yield_now().await;
    }
    let is_seen = || !server.objects(MAPS).is_empty();
    if sends {
        until(PATIENCE, "the server sees the write", is_seen).await;
    }
    let error = within(PATIENCE, "the write is cut off", write).await.unwrap_err();
    assert!(ErrLeadershipLost::find(&error).is_some(), "{error}");
    assert_eq!(is_seen(), sends);
}

#[tokio::test]
async fn s2_frozen_connection_sends_nothing_through_kube_client_5() {
    freeze_in_between(through_kube_client_5, false).await;
}

/// Connections of kube 4 cannot prevent this.
#[tokio::test]
async fn frozen_connection_still_sends_through_own_kube() {
    freeze_in_between(through_own_kube, true).await;
}

/// The same client, with a count of the writes that the gate refuses.
fn counted(client: Client, refused: Arc<AtomicUsize>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let (client, refused) = (client.clone(), refused.clone());
        async move {
            client.send(request).await.inspect_err(|error| {
                refused.fetch_add(usize::from(ErrNotLeader::find(error).is_some()), Ordering::Relaxed);
            })
        }
    });
    Client::new(service, namespace)
}

#[tokio::test]
async fn gain_brings_back_what_a_follower_skipped() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    server.put("user", &format!("{MAPS}/skipped"), serde_json::json!({})).unwrap();
    let (a, _) = replica(&endpoint, "a", through_kube_client_5);
    leads(&a).await;

    let (b, client) = replica(&endpoint, "b", through_kube_client_5);
    let refused = Arc::<AtomicUsize>::default();
    let maps = Api::default_namespaced(counted(client, refused.clone()));
    let controller = Controller::new(maps.clone(), watcher::Config::default());
    let controller = operator::run(controller, maps, b.candidate().clone(), std::future::pending());
    let controller = tokio::spawn(controller);
    until(PATIENCE, "the gate refuses the follower's write", || refused.load(Ordering::Relaxed) == 1).await;
    let is_marked = || server.objects(MAPS)[0]["metadata"]["labels"][operator::MARK] == "true";
    assert!(!is_marked());

    a.stop().await;
    until(PATIENCE, "the new leader marks it", is_marked).await;
    assert_eq!(refused.load(Ordering::Relaxed), 1, "a follower tries once");
    controller.abort();
}

/// The gate waits for the write of the former leader, and for the end of what it has deleted.
#[tokio::test]
async fn s16_gate_opens_when_the_cache_shows_the_last_writes() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let put = |name| server.put("former", &format!("{MAPS}/{name}"), serde_json::json!({})).unwrap();
    let election = builder("a").open_timeout(PATIENCE * 2).build(&endpoint.config("a")).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(through_kube_client_5(&election, &endpoint, "a"));
    put("deleted");
    let deleted = maps.get("deleted").await.unwrap();
    server.delete("former", &format!("{MAPS}/deleted")).unwrap();
    put("written");
    let written = maps.get("written").await.unwrap();

    let (store, mut writer) = reflector::store();
    let waits = open_when_caught_up(election, maps.clone(), ListParams::default(), store.clone());
    let running = waits.start();
    let lists = || server.reads("a", "list", "configmaps");
    // Its second list shows that it has compared the cache with the first one.
    until(PATIENCE, "the condition compares", || lists() > 1).await;
    assert!(!running.candidate().is_leader(), "the cache lacks an object");
    writer.apply_watcher_event(&watcher::Event::Apply(deleted.clone()));
    writer.apply_watcher_event(&watcher::Event::Apply(written));
    let before = lists();
    until(PATIENCE, "the condition compares again", || lists() > before + 1).await;
    assert!(!running.candidate().is_leader(), "the cache still has an object that is gone");
    writer.apply_watcher_event(&watcher::Event::Delete(deleted));
    leads(&running).await;
}

/// As `exec`, `attach` and `portforward` begin: the connection belongs to the two ends from then on.
#[tokio::test]
async fn both_ways_pass_an_upgraded_connection_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let answer =
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
            let (mut read, mut write) = stream.split();
            copy(&mut read, &mut write).await.unwrap();
        }
    });
    for way in [
        |election: &Election, url: &str| {
            client::through_kube_client_5(election, &kube_client::Config::new(url.parse().unwrap())).unwrap()
        },
        |election: &Election, url: &str| {
            client::through_own_kube(election, Config::new(url.parse().unwrap())).unwrap()
        },
    ] {
        let election = builder("a").build_alone().unwrap();
        let client = way(&election, &url);
        let exec = || {
            let path = "/api/v1/namespaces/default/pods/a/exec?command=cat&stdin=true";
            let upgrade = Request::get(path).header("connection", "upgrade").header("upgrade", "websocket");
            client.send(upgrade.body(Body::empty()).unwrap())
        };
        assert!(exec().await.is_err(), "a follower runs no command");
        let running = election.start();
        within(PATIENCE, "it leads", running.candidate().elected()).await;
        let mut both = TokioIo::new(hyper::upgrade::on(exec().await.unwrap()).await.unwrap());
        both.write_all(b"echo").await.unwrap();
        let mut echo = [0; 4];
        both.read_exact(&mut echo).await.unwrap();
        assert_eq!(&echo, b"echo");
    }
    serving.abort();
}
