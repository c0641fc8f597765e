//! What passes through the gate of a workload's own client.

use crate::{
    candidate::{Contender, following, leading, timing, write},
    outsider::Outsider,
    support::{PATIENCE, is_cut_off, is_not_leader, throughout, until, within},
    world::World,
};
use futures_util::TryStreamExt;
use http::{Method, Request, header};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api,
    api::{ListParams, WatchParams},
    client::Body,
};
use serde_json::json;
use tokio::task::JoinSet;

/// Each kind of write: method, path below the namespace, content type and body.
fn writes() -> Vec<(Method, &'static str, &'static str, serde_json::Value)> {
    let json = "application/json";
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let mut applied = map("work");
    applied["data"] = json!({ "applied": "yes" });
    vec![
        (Method::POST, "configmaps", json, map("new")),
        (Method::POST, "configmaps?dryRun=All", json, map("dry")),
        (Method::PUT, "configmaps/work", json, map("work")),
        (Method::PATCH, "configmaps/work", "application/merge-patch+json", json!({ "data": { "a": "b" } })),
        (
            Method::PATCH,
            "configmaps/work",
            "application/strategic-merge-patch+json",
            json!({ "data": { "a": "c" } }),
        ),
        (
            Method::PATCH,
            "configmaps/work?fieldManager=workload&force=true",
            "application/apply-patch+yaml",
            applied,
        ),
        (
            Method::PATCH,
            "resourcequotas/none/status",
            "application/merge-patch+json",
            json!({ "status": {} }),
        ),
        (Method::POST, "pods/none/eviction", json, json!({ "apiVersion": "policy/v1", "kind": "Eviction" })),
        (Method::POST, "pods/none/binding", json, json!({ "apiVersion": "v1", "kind": "Binding" })),
        (Method::DELETE, "configmaps/new", json, json!({})),
        (Method::DELETE, "configmaps?labelSelector=no-object%3Dhas-it", json, json!({})),
    ]
}

/// Sends it through the gate. Returns the HTTP status or the error.
async fn send(
    candidate: &Contender,
    world: &impl World,
    (method, path, kind, body): &(Method, &str, &str, serde_json::Value),
) -> Result<u16, kube_client::Error> {
    let path = format!("/api/v1/namespaces/{}/{path}", world.namespace());
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, *kind);
    let request = request.body(Body::from(body.to_string().into_bytes())).expect("a request");
    candidate.client.send(request).await.map(|response| response.status().as_u16())
}

pub async fn follower_can_read_everything_and_write_nothing(world: &impl World) {
    let _a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    for write in writes() {
        let refused = send(&b, world, &write).await;
        assert!(is_not_leader(&refused), "{write:?}: {refused:?}");
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("write attempt rejected as client is not leader"), "{message}");
        assert!(message.contains("last known holder of the lease is \"candidate-0\""), "{message}");
    }
    let exec = format!("/api/v1/namespaces/{}/pods/none/exec?command=id&stdout=true", world.namespace());
    let exec = Request::get(exec).header("Connection", "Upgrade").header("Upgrade", "websocket");
    let refused = b.client.send(exec.body(Body::empty()).expect("a request")).await;
    assert!(is_not_leader(&refused), "exec is a GET: {refused:?}");
    let maps: Api<ConfigMap> = Api::default_namespaced(b.client.clone());
    maps.get("work").await.expect("a get");
    maps.list(&ListParams::default()).await.expect("a list");
    let mut seen = std::pin::pin!(maps.watch(&WatchParams::default(), "0").await.expect("a watch"));
    let first = within(PATIENCE, "the watch tells", seen.try_next()).await.expect("an event");
    assert!(first.is_some());
    b.client.apiserver_version().await.expect("the version");
    b.client.list_api_groups().await.expect("discovery");
    // Its election may have contended for the lease at its start.
    let mut arrived = world.writes().await;
    arrived.retain(|write| write.user == "candidate-1" && write.resource != "leases");
    assert!(arrived.is_empty(), "{arrived:?}");
}

pub async fn leader_can_make_every_kind_of_write(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let mut answers = Vec::new();
    for write in writes() {
        answers.push(send(&a, world, &write).await.unwrap_or_else(|error| panic!("{write:?}: {error}")));
    }
    let mut log = world.writes().await;
    log.retain(|write| write.user == "candidate-0" && write.resource != "leases");
    // All writes have arrived, each one once.
    assert_eq!(log.iter().map(|write| write.status).collect::<Vec<_>>(), answers);
    assert!(answers.iter().filter(|status| (200..300).contains(*status)).count() >= 8, "{answers:?}");
}

/// No task polls the workload's write, and the loss still ends it.
pub async fn s2_loss_cuts_off_a_hanging_write(world: &impl World) {
    for stolen in [true, false] {
        let a = leading(world, "candidate-0").await;
        a.work.hold();
        let client = a.client.clone();
        let hanging = tokio::spawn(async move { write(&client).await });
        until("the write is under way", async || a.candidate().leadership().writes_under_way() == 1).await;
        if stolen {
            Outsider::of(world).steal().await;
        } else {
            a.line.cut();
        }
        let result = within(PATIENCE, "the write is cut off", hanging).await.unwrap();
        assert!(is_cut_off(&result), "{result:?}");
        assert!(!a.candidate().can_write());
        assert_eq!(a.candidate().leadership().writes_under_way(), 0);
        drop(a);
        Outsider::of(world).delete().await;
    }
}

/// Hanging requests take all connections of the workload's client. The election has its own.
pub async fn s14_hanging_workload_requests_do_not_delay_renewals(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let term = a.elected().await;
    a.work.hold();
    let mut stuck = JoinSet::new();
    for _ in 0..50 {
        let client = a.client.clone();
        stuck.spawn(async move { write(&client).await });
    }
    until("they hang", async || a.candidate().leadership().writes_under_way() == 50).await;
    throughout(timing().renew_deadline() * 2, "the candidate leads", || a.candidate().can_write()).await;
    assert_eq!(a.candidate().term(), Some(term));
    assert_eq!(a.candidate().leadership().writes_under_way(), 50);
}
