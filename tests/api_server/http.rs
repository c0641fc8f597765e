//! Over real HTTP, with a real client.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube_client::{Client, Config, Error};
use kube_leader_gate::testing::{ApiServer, Break, Endpoint, Fault};
use serde_json::json;

use crate::support::{LEASES, MAPS};

const LIMIT: Duration = Duration::from_secs(10);

fn config(endpoint: &Endpoint, user: &str) -> Config {
    // Without the client's own retries, each request is one request.
    let mut config = Config::new(endpoint.uri().parse().unwrap());
    config.auth_info.token = Some(user.into());
    config.default_retry = false;
    config
}

fn client(endpoint: &Endpoint, user: &str) -> Client {
    config(endpoint, user).try_into().unwrap()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("in time")
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        other => panic!("{other:?}"),
    }
}

#[cfg(feature = "election")]
#[tokio::test]
async fn the_endpoint_makes_a_client_configuration() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let config = endpoint.config("alice");
    assert_eq!(
        (config.cluster_url.to_string(), config.default_namespace.as_str()),
        (format!("{}/", endpoint.uri()), "default")
    );
    let client = Client::try_from(config).unwrap();
    Api::<ConfigMap>::default_namespaced(client).create(&PostParams::default(), &map("x")).await.unwrap();
    assert_eq!(server.write_log()[0].user, "alice");
}

#[tokio::test]
async fn a_real_client_works_with_it() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let client = client(&endpoint, "alice");
    assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
    assert!(client.list_api_groups().await.unwrap().groups.iter().any(|it| it.name == "coordination.k8s.io"));
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps.create(&PostParams::default(), &map("x")).await.unwrap();
    assert_eq!(code(&maps.create(&PostParams::default(), &map("x")).await.unwrap_err()), 409);
    let patch = json!({ "data": { "k": "v" } });
    let patched = maps.patch("x", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(patched.data.unwrap()["k"], "v");
    assert_eq!(code(&maps.replace("x", &PostParams::default(), &made).await.unwrap_err()), 409);
    let applied = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "y" } });
    maps.patch("y", &PatchParams::apply("test"), &Patch::Apply(&applied)).await.unwrap();
    let list = maps.list(&ListParams::default().fields("metadata.name=x")).await.unwrap();
    assert_eq!((list.items.len(), list.metadata.resource_version.as_deref()), (1, Some("4")));
    assert!(maps.delete("x", &DeleteParams::default()).await.unwrap().is_right());
    assert!(maps.get_opt("x").await.unwrap().is_none());

    let leases: Api<Lease> = Api::default_namespaced(client);
    let lease: Lease = serde_json::from_value(json!({
        "metadata": { "name": "demo" },
        "spec": { "holderIdentity": "alice", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z" },
    }))
    .unwrap();
    let lease = leases.create(&PostParams::default(), &lease).await.unwrap();
    leases.replace("demo", &PostParams::default(), &lease).await.unwrap();
    let log = server.write_log();
    assert!(log.iter().all(|it| it.user == "alice"));
    assert_eq!(log.last().unwrap().lease.as_ref().unwrap().holder_identity, "alice");
    assert_eq!(log.last().unwrap().path, format!("{LEASES}/demo"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_updates_of_one_version_one_wins() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&endpoint, "a"));
    let made = maps.create(&PostParams::default(), &map("x")).await.unwrap();
    let attempts = (0..100).map(|number: i32| {
        let (maps, mut next) = (maps.clone(), made.clone());
        next.data = Some([("k".to_owned(), number.to_string())].into());
        tokio::spawn(async move { maps.replace("x", &PostParams::default(), &next).await })
    });
    let answers = within(futures_util::future::join_all(attempts)).await;
    let lost = answers.into_iter().map(Result::unwrap).filter_map(Result::err).map(|it| code(&it));
    assert_eq!(lost.collect::<Vec<_>>(), [409; 99]);
}

#[tokio::test]
async fn a_real_client_watches() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&endpoint, "a"));
    maps.create(&PostParams::default(), &map("x")).await.unwrap();
    let streaming = WatchParams::default().initial_events();
    let mut stream = maps.watch(&streaming, "0").await.unwrap().boxed();
    let mut next = async || within(stream.try_next()).await.unwrap().expect("an event");
    assert!(matches!(next().await, WatchEvent::Added(it) if it.metadata.name.as_deref() == Some("x")));
    assert!(
        matches!(next().await, WatchEvent::Bookmark(it) if it.metadata.annotations.contains_key("k8s.io/initial-events-end"))
    );
    maps.create(&PostParams::default(), &map("y")).await.unwrap();
    assert!(matches!(next().await, WatchEvent::Added(it) if it.metadata.name.as_deref() == Some("y")));
    server.compact();
    let mut late = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let event = within(late.try_next()).await.unwrap().expect("an event");
    assert!(matches!(event, WatchEvent::Error(it) if it.code == 410 && it.reason == "Expired"));

    assert_eq!(server.break_watches(|_| true, Break::Cut), 1);
    assert!(within(stream.try_next()).await.is_err(), "half a line and a lost connection are an error");
}

/// Sends raw bytes; returns what comes back until the server closes.
async fn raw(endpoint: &Endpoint, bytes: &str) -> String {
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    until_closed(stream).await
}

async fn until_closed(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset is a close as well.
    let _ = within(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(name: &str) -> String {
    let body = json!({ "metadata": { "name": name } }).to_string();
    format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_dropped_connection_is_no_answer() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&endpoint, "a"));
    let error = maps.create(&PostParams::default(), &map("y")).await.unwrap_err();
    assert!(!matches!(error, Error::Api(_)), "{error:?}");
}

#[tokio::test]
async fn a_client_that_hangs_up_takes_its_request_back() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let guard = server.inject(Fault::hang_before());
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(post("x").as_bytes()).await.unwrap();
    within(async {
        while guard.hits() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(stream);
    endpoint.shutdown().await;
    assert!(server.objects(MAPS).is_empty());
    assert_eq!(server.write_log()[0].completed, None);
}

#[tokio::test]
async fn nonsense_gets_an_error_and_bodies_are_bounded() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    assert!(raw(&endpoint, "nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let big = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n{{");
    assert!(raw(&endpoint, &big).await.starts_with("HTTP/1.1 413"));
    let short = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{{");
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(short.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(until_closed(stream).await, "");
    assert!(server.objects(MAPS).is_empty());
}

/// Opens a watch by hand and reads its head.
async fn raw_watch(endpoint: &Endpoint) -> TcpStream {
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut head = [0; 15];
    within(stream.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    stream
}

#[tokio::test]
async fn an_endpoint_closes_its_connections_when_it_ends() {
    let server = ApiServer::new();
    let (first, second) = (server.serve().await.unwrap(), server.serve().await.unwrap());
    assert_ne!(first.addr(), second.addr());
    let (watching, idle) = (raw_watch(&first).await, TcpStream::connect(first.addr()).await.unwrap());
    let other = raw_watch(&second).await;
    assert_eq!(server.open_watches(), 2);
    let addr = first.addr();
    first.shutdown().await;
    assert_eq!(server.open_watches(), 1, "the watch has ended with its connection");
    until_closed(watching).await;
    assert_eq!(until_closed(idle).await, "");
    assert!(TcpStream::connect(addr).await.is_err());
    drop(second);
    until_closed(other).await;
    assert_eq!(server.open_watches(), 0);
}

#[tokio::test]
async fn an_endpoint_can_be_out_for_a_while() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&endpoint, "a"));
    maps.create(&PostParams::default(), &map("x")).await.unwrap();
    let mut watching = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    assert!(within(watching.try_next()).await.unwrap().is_some());
    endpoint.pause().await;
    assert!(within(watching.try_next()).await.unwrap().is_none());
    assert_eq!(server.open_watches(), 0);
    assert!(within(maps.get("x")).await.is_err());
    assert!(within(maps.get("x")).await.is_err());
    endpoint.resume().await;
    assert_eq!(within(maps.get("x")).await.unwrap().metadata.name.as_deref(), Some("x"));
}

#[tokio::test]
async fn lines_of_a_watch_are_sent_as_they_happen() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let mut stream = raw_watch(&endpoint).await;
    server.put("b", &format!("{MAPS}/x"), json!({})).unwrap();
    let mut seen = String::new();
    while !seen.contains("}\n\r\n") {
        let mut part = [0; 1024];
        let length = within(stream.read(&mut part)).await.unwrap();
        seen.push_str(std::str::from_utf8(&part[..length]).unwrap());
    }
    assert!(seen.contains("transfer-encoding: chunked"), "{seen}");
    let line = seen.lines().find(|it| it.starts_with('{')).expect("an event");
    let event: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("x")));
}
