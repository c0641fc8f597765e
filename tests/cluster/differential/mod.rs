//! The same requests to a real API server and to the in-process one: they must answer alike.
//!
//! The requests are in `scenes`. Each scene plays on both servers in a namespace of its own, and each step's
//! two answers are compared: the status, the headers that clients act on, and the body or the events of a
//! stream. What servers make up for themselves is compared by its place: the third version that one server
//! shows is the third of the other. What a parser says about a text, and who manages a field, is left out.
//!
//! ```text
//! ## the name of a scene
//! METHOD path
//! Header: value
//! body: the body; a line that begins with two spaces
//!   goes on with it, and `<no text>` is no UTF-8
//! keep: it          from here on `$it` is the body, `$it.version`, `$it.uid` and `$it.continue` are of its metadata
//! stream: it        the answer stays open
//! each: a value     one such request for each; `$each` is the value, `$n` its number
//! words: why        only the words for people differ
//! differs: why      the answers differ; that they do not is a failure too
//!
//! READ it 3         three more events of the stream; without a number, all until its end
//! ```
//!
//! A bookmark that the server's own clock sends is skipped.

mod answers;
mod run;
mod scene;
mod shape;

use futures_util::future::join_all;
use kube_client::{Client, Config};
use kube_leader_gate::testing::ApiServer;
use scene::{Scene, Variables};
use serde_json::{Value, json};

use crate::apiserver::{Cluster, assets, shared};

const SCENES: [(&str, &str); 10] = [
    ("bodies.http", include_str!("scenes/bodies.http")),
    ("deletes.http", include_str!("scenes/deletes.http")),
    ("events.http", include_str!("scenes/events.http")),
    ("leases.http", include_str!("scenes/leases.http")),
    ("lists.http", include_str!("scenes/lists.http")),
    ("metadata.http", include_str!("scenes/metadata.http")),
    ("others.http", include_str!("scenes/others.http")),
    ("patches.http", include_str!("scenes/patches.http")),
    ("paths.http", include_str!("scenes/paths.http")),
    ("watches.http", include_str!("scenes/watches.http")),
];

pub async fn in_process_server_answers_like_real_server() {
    let cluster = shared().await;
    compare(cluster, &ApiServer::new(), &SCENES).await;
}

/// A server that has just started still knows its first version, so both servers start here.
pub async fn both_servers_report_expired_version_alike() {
    let cluster = Cluster::start(assets()).await;
    cluster.restart().await;
    let server = ApiServer::new();
    server
        .put("admin", "/api/v1/namespaces/first", json!({}))
        .expect("the in-process server accepts any object");
    server.compact();
    compare(&cluster, &server, &[("gone.http", include_str!("scenes/gone.http"))]).await;
}

/// Plays the scenes on both servers, all at once, and panics with every answer that is not as expected.
async fn compare(cluster: &Cluster, server: &ApiServer, scenes: &[(&str, &str)]) {
    let endpoint = server.serve().await.expect("a port");
    let real = client(cluster.config("admin"));
    let ours = client(endpoint.config("admin"));
    let scenes: Vec<Scene> = scenes.iter().flat_map(|(file, text)| Scene::parse_all(file, text)).collect();
    let complaints = join_all(scenes.iter().map(async |scene| {
        let namespace = cluster.namespace().await;
        server
            .put("admin", &format!("/api/v1/namespaces/{namespace}"), json!({}))
            .expect("the in-process server accepts any object");
        let variables = variables(&namespace);
        let (real, ours) = tokio::join!(
            run::play(real.clone(), scene, variables.clone()),
            run::play(ours.clone(), scene, variables),
        );
        complaints(scene, &real, &ours)
    }))
    .await
    .concat();
    let steps: usize = scenes.iter().map(|it| it.steps.len()).sum();
    assert!(
        complaints.is_empty(),
        "of {steps} answers, {} are not as expected:\n\n{}\n",
        complaints.len(),
        complaints.join("\n\n")
    );
}

/// Without retries, one request is one request.
fn client(mut config: Config) -> Client {
    config.default_retry = false;
    config.try_into().expect("a client")
}

fn variables(namespace: &str) -> Variables {
    let core = format!("/api/v1/namespaces/{namespace}");
    [
        ("ns", namespace.to_owned()),
        ("leases", format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")),
        ("events", format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")),
        ("maps", format!("{core}/configmaps")),
        ("pods", format!("{core}/pods")),
        // Longer than any name may be.
        ("long", "v".repeat(300)),
        // More than all annotations of an object may hold.
        ("large", "v".repeat(300_000)),
        // More than etcd accepts.
        ("bulk", "v".repeat(2_000_000)),
        // More than a body may hold.
        ("huge", "v".repeat(3_200_000)),
        ("deep", "[".repeat(20_000)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn complaints(scene: &Scene, real: &[Value], ours: &[Value]) -> Vec<String> {
    let answers = scene.steps.iter().zip(real.iter().zip(ours));
    let complaint = |(step, (real, ours)): (&scene::Step, (&Value, &Value))| {
        let found = answers::complaints(&step.expect, real, ours);
        let head = format!("{} {} (in: {})", step.place, step.action, scene.name);
        (!found.is_empty()).then(|| format!("{head}\n    {}", found.join("\n    ")))
    };
    answers.filter_map(complaint).collect()
}
