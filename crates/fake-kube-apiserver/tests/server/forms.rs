//! Answers that show the metadata alone.

use ::http::Request;
use fake_kube_apiserver::{ApiBody, ApiServer, WatchBreak};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::{LEASES, MAPS, Next, Watch, ask, read};

const ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn send(server: &ApiServer, method: &str, path: &str, accept: &str) -> ::http::Response<ApiBody> {
    let body = json!({ "metadata": { "generateName": "g-" }, "data": { "k": "v" } }).to_string();
    let request = Request::builder().method(method).uri(path).header("accept", accept).body(body).unwrap();
    server.service().oneshot(request).await.expect("an answer")
}

/// The server has the config maps `a`, `b` and `c`.
async fn three() -> ApiServer {
    let server = ApiServer::new();
    for name in ["a", "b", "c"] {
        let map = json!({ "metadata": { "name": name, "labels": { "l": name } }, "data": { "k": "v" } });
        ask(&server, "POST", MAPS, map).await;
    }
    server
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|it| it["metadata"]["name"].as_str().expect("a name")).collect()
}

fn assert_partial(object: &Value, stored: &Value) {
    let expected = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": stored["metadata"],
    });
    assert_eq!(*object, expected);
}

#[tokio::test]
async fn list_of_metadata_has_pages() {
    let server = three().await;
    let whole = ask(&server, "GET", MAPS, "").await;
    let list = read(send(&server, "GET", MAPS, LIST).await).await;
    assert_eq!(list.headers["content-type"], "application/json");
    assert_eq!(list.body["kind"], "PartialObjectMetadataList");
    assert_eq!(list.body["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(list.body["metadata"], whole.body["metadata"]);
    let items = list.body["items"].as_array().expect("items");
    for (item, stored) in items.iter().zip(whole.body["items"].as_array().expect("items")) {
        assert_partial(item, stored);
    }
    assert_eq!(names(&list.body), ["a", "b", "c"]);

    let first = read(send(&server, "GET", &format!("{MAPS}?limit=2"), LIST).await).await;
    assert_eq!(
        (names(&first.body), &first.body["metadata"]["remainingItemCount"]),
        (vec!["a", "b"], &json!(1))
    );
    let token = first.body["metadata"]["continue"].as_str().expect("more");
    let second = read(send(&server, "GET", &format!("{MAPS}?limit=2&continue={token}"), LIST).await).await;
    assert_eq!((names(&second.body), second.version()), (vec!["c"], first.version()));

    let none = read(send(&server, "GET", LEASES, LIST).await).await;
    assert_eq!((none.code, &none.body["kind"]), (200, &list.body["kind"]));
    assert_eq!(none.body.get("items"), Some(&Value::Null), "like the real server");
}

#[tokio::test]
async fn object_is_shown_as_metadata_in_reads_and_writes() {
    let server = three().await;
    let a = format!("{MAPS}/a");
    let shown = read(send(&server, "GET", &a, ONE).await).await;
    assert_partial(&shown.body, &server.object(&a).expect("it is there"));
    let made = read(send(&server, "POST", MAPS, ONE).await).await;
    let name = made.body["metadata"]["name"].as_str().expect("a name");
    let stored = server.object(&format!("{MAPS}/{name}")).expect("it is there");
    assert_partial(&made.body, &stored);
    assert_eq!((made.code, &stored["data"]["k"]), (201, &json!("v")), "the whole object is stored");
    let gone = read(send(&server, "GET", &format!("{MAPS}/nobody"), ONE).await).await;
    assert!(gone.said().starts_with("NotFound"), "a refusal is a whole Status");
}

#[tokio::test]
async fn first_form_that_the_server_has_counts() {
    let server = three().await;
    let kind = async |path: &str, accept: &str| {
        let answer = read(send(&server, "GET", path, accept).await).await;
        answer.body["kind"].as_str().expect("a kind").to_owned()
    };
    let a = format!("{MAPS}/a");
    assert_eq!(kind(&a, &format!("{ONE}, application/json")).await, "PartialObjectMetadata");
    assert_eq!(kind(&a, &format!("application/json, {ONE}")).await, "ConfigMap");
    assert_eq!(kind(&a, &format!("{ONE}2, */*")).await, "ConfigMap", "the server has no version v12");
    assert_eq!(kind(MAPS, "application/json;as=Table;g=meta.k8s.io;v=v1").await, "ConfigMapList");
    for (path, accept, said) in [
        (MAPS, ONE, "you requested PartialObjectMetadata, but the requested object is a list"),
        (&a, LIST, "you requested PartialObjectMetadataList, but the requested object is not a list"),
        (
            &a,
            "application/json;as=PartialObjectMetadata",
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf",
        ),
    ] {
        let refused = read(send(&server, "GET", path, accept).await).await;
        assert_eq!((refused.code, refused.said()), (406, format!("NotAcceptable: {said}")));
    }
}

#[tokio::test]
async fn watch_of_metadata_shows_each_event_and_breaks_as_any_other() {
    let server = three().await;
    let stored = server.object(&format!("{MAPS}/a")).expect("it is there");
    let streaming =
        "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut watch = Watch::of(send(&server, "GET", &format!("{MAPS}?{streaming}"), ONE).await);
    let Next::Event(kind, object) = watch.next().await else { panic!("an event") };
    assert_eq!(kind, "ADDED");
    assert_partial(&object, &stored);
    assert_eq!([watch.brief().await, watch.brief().await], ["ADDED b", "ADDED c"]);
    let Next::Event(kind, object) = watch.next().await else { panic!("an event") };
    assert_eq!((kind.as_str(), &object["kind"]), ("BOOKMARK", &json!("PartialObjectMetadata")));
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    ask(&server, "DELETE", &format!("{MAPS}/b"), "").await;
    assert_eq!(watch.brief().await, "DELETED b");
    server.break_watches(|_| true, WatchBreak::Garbage);
    assert!(matches!(watch.next().await, Next::Junk(_)));
    server.break_watches(|_| true, WatchBreak::Expired);
    let Next::Event(kind, status) = watch.next().await else { panic!("an event") };
    assert_eq!((kind.as_str(), &status["kind"]), ("ERROR", &json!("Status")));
}
