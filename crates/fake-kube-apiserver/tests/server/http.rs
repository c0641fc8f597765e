//! Over real HTTP, with a real client.

use std::time::Duration;

use fake_kube_apiserver::{ApiServer, Endpoint, Fault, WatchBreak};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Config, Error};
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

#[tokio::test]
async fn endpoint_provides_a_client_configuration() {
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
async fn real_client_reads_and_writes() {
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
async fn one_of_hundred_updates_of_a_version_succeeds() {
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
async fn real_client_watches() {
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

    assert_eq!(server.break_watches(|_| true, WatchBreak::Cut), 1);
    assert!(
        within(stream.try_next()).await.unwrap().is_none(),
        "this client takes a lost connection for the end"
    );
}

#[tokio::test]
async fn dropped_connection_fails_the_clients_call() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&endpoint, "a"));
    for (fault, there) in [(Fault::drop_before(), 0), (Fault::drop_after(), 1)] {
        let _guard = server.inject(fault.user("a"));
        let error = maps.create(&PostParams::default(), &map("x")).await.unwrap_err();
        assert!(!matches!(error, Error::Api(_)), "{error:?}");
        assert_eq!(server.objects(MAPS).len(), there);
    }
}

#[tokio::test]
async fn endpoint_can_be_switched_off_and_on() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&endpoint, "a"));
    maps.create(&PostParams::default(), &map("x")).await.unwrap();
    let mut watching = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    assert!(matches!(within(watching.try_next()).await, Ok(Some(WatchEvent::Added(_)))));
    assert!(matches!(within(watching.try_next()).await, Ok(Some(WatchEvent::Bookmark(_)))));
    endpoint.pause().await;
    assert!(within(watching.try_next()).await.unwrap().is_none());
    assert_eq!(server.open_watches(), 0);
    assert!(within(maps.get("x")).await.is_err());
    assert!(within(maps.get("x")).await.is_err());
    endpoint.resume().await;
    assert_eq!(within(maps.get("x")).await.unwrap().metadata.name.as_deref(), Some("x"));
}
