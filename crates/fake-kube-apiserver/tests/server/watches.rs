//! Watch: where it starts, what it shows, how it ends.

use std::time::Duration;

use fake_kube_apiserver::{ApiServer, WatchBreak};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{MAPS, Next, ask, watch};

async fn make(server: &ApiServer, name: &str) -> String {
    ask(server, "POST", MAPS, json!({ "metadata": { "name": name, "labels": { "app": "x" } } }))
        .await
        .version()
}

async fn set(server: &ApiServer, name: &str, patch: Value) -> String {
    ask(server, "PATCH", &format!("{MAPS}/{name}"), patch).await.version()
}

#[tokio::test]
async fn watch_without_version_begins_with_current_objects() {
    let server = ApiServer::new();
    make(&server, "a").await;
    for query in ["watch=true", "watch=1&resourceVersion=0"] {
        let mut watch = watch(&server, &format!("{MAPS}?{query}")).await;
        assert_eq!(watch.brief().await, "ADDED a");
        make(&server, "b").await;
        assert_eq!(watch.brief().await, "ADDED b");
        let version = set(&server, "b", json!({ "data": { "k": "v" } })).await;
        let Next::Event(kind, object) = watch.next().await else { panic!("an event") };
        assert_eq!((kind.as_str(), &object["data"]["k"]), ("MODIFIED", &json!("v")));
        assert_eq!(object["metadata"]["resourceVersion"], version);
        ask(&server, "DELETE", &format!("{MAPS}/b"), "").await;
        let Next::Event(kind, object) = watch.next().await else { panic!("an event") };
        assert_eq!((kind.as_str(), &object["data"]["k"]), ("DELETED", &json!("v")));
        let version = |it: &str| it.parse::<u64>().unwrap();
        assert_eq!(
            object["metadata"]["resourceVersion"].as_str().map(version),
            Some(version_of(&server).await)
        );
    }
    assert_eq!(server.open_watches(), 0, "a watch that is dropped is closed");
    assert_eq!(server.reads("a", "watch", "configmaps"), 2);
}

async fn version_of(server: &ApiServer) -> u64 {
    ask(server, "GET", MAPS, "").await.version().parse().unwrap()
}

#[tokio::test]
async fn watch_with_version_shows_only_later_changes() {
    let server = ApiServer::new();
    make(&server, "a").await;
    let version = make(&server, "b").await;
    set(&server, "a", json!({ "data": { "k": "v" } })).await;
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={version}")).await;
    assert_eq!(watch.brief().await, "MODIFIED a");
    make(&server, "c").await;
    assert_eq!(watch.brief().await, "ADDED c");
}

#[tokio::test]
async fn watch_of_old_version_gets_410_event() {
    let server = ApiServer::builder().event_history(2).build();
    let first = make(&server, "a").await;
    for name in ["b", "c"] {
        make(&server, name).await;
    }
    let mut kept = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={first}")).await;
    assert_eq!([kept.brief().await, kept.brief().await], ["ADDED b", "ADDED c"]);
    make(&server, "d").await;
    assert_eq!(kept.brief().await, "ADDED d", "an open watch is not touched");
    let mut late = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={first}")).await;
    let Next::Event(kind, status) = late.next().await else { panic!("an event") };
    assert_eq!(
        (kind.as_str(), &status["code"], &status["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    assert_eq!(status["message"], "too old resource version: 2 (3)");
    assert_eq!(late.next().await, Next::End);

    let now = make(&server, "e").await;
    server.compact();
    let mut now = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={now}")).await;
    make(&server, "f").await;
    assert_eq!(now.brief().await, "ADDED f");
}

#[tokio::test]
async fn streaming_list_ends_with_bookmark() {
    let server = ApiServer::new();
    make(&server, "a").await;
    let options =
        "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut stream = watch(&server, &format!("{MAPS}?{options}")).await;
    assert_eq!(stream.brief().await, "ADDED a");
    let Next::Event(kind, object) = stream.next().await else { panic!("an event") };
    assert_eq!((kind.as_str(), &object["kind"]), ("BOOKMARK", &json!("ConfigMap")));
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(object["metadata"]["resourceVersion"], "2");
    make(&server, "b").await;
    assert_eq!(stream.brief().await, "ADDED b");
    let mut later = watch(
        &server,
        &format!("{MAPS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"),
    )
    .await;
    make(&server, "c").await;
    assert_eq!(later.brief().await, "ADDED c", "no initial events");

    for (query, code) in [
        ("watch=true&sendInitialEvents=true", 422),
        ("watch=true&resourceVersionMatch=NotOlderThan", 422),
        ("sendInitialEvents=true", 422),
        ("resourceVersion=x", 400),
        ("resourceVersion=99", 504),
        ("labelSelector=a(", 400),
    ] {
        assert_eq!(ask(&server, "GET", &format!("{MAPS}?{query}"), "").await.code, code, "{query}");
    }
    let mut future = watch(&server, &format!("{MAPS}?{options}&resourceVersion=99")).await;
    let Next::Event(kind, status) = future.next().await else { panic!("an event") };
    assert_eq!((kind.as_str(), &status["code"]), ("ERROR", &json!(504)));
    assert_eq!(future.next().await, Next::End);
}

#[tokio::test]
async fn selector_turns_changes_into_additions_and_deletions() {
    let server = ApiServer::new();
    let mut labelled = watch(&server, &format!("{MAPS}?watch=true&labelSelector=app%3Dx")).await;
    let mut named = watch(&server, &format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Db")).await;
    let mut elsewhere = watch(&server, "/api/v1/namespaces/other/configmaps?watch=true").await;
    make(&server, "a").await;
    set(&server, "a", json!({ "metadata": { "labels": { "app": "y" } }, "data": { "k": "new" } })).await;
    set(&server, "a", json!({ "data": { "k": "unseen" } })).await;
    make(&server, "b").await;
    set(&server, "a", json!({ "metadata": { "labels": { "app": "x" } } })).await;
    assert_eq!(labelled.brief().await, "ADDED a");
    let Next::Event(kind, object) = labelled.next().await else { panic!("an event") };
    assert_eq!((kind.as_str(), &object["data"]), ("DELETED", &Value::Null), "it left as it was last seen");
    assert_eq!(object["metadata"]["resourceVersion"], "3");
    assert_eq!(labelled.brief().await, "ADDED b");
    assert_eq!(labelled.brief().await, "ADDED a");
    assert_eq!(named.brief().await, "ADDED b");
    ask(&server, "POST", "/api/v1/namespaces/other/configmaps", json!({ "metadata": { "name": "z" } })).await;
    assert_eq!(elsewhere.brief().await, "ADDED z");
    let mut legacy = watch(&server, "/api/v1/watch/namespaces/default/configmaps/b").await;
    assert_eq!(legacy.brief().await, "ADDED b");
    ask(&server, "DELETE", "/api/v1/watch/namespaces/default/configmaps/b", "").await;
    assert!(server.object(&format!("{MAPS}/b")).is_some(), "nothing is deleted under that prefix");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_arrive_each_minute_after_earlier_events() {
    let server = ApiServer::new();
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&allowWatchBookmarks=true")).await;
    let start = Instant::now();
    assert_eq!(watch.brief().await, "BOOKMARK", "behind what was there at the start");
    tokio::time::advance(Duration::from_secs(61)).await;
    make(&server, "a").await;
    assert_eq!(watch.brief().await, "ADDED a");
    let Next::Event(kind, object) = watch.next().await else { panic!("an event") };
    assert_eq!((kind.as_str(), &object["metadata"]["resourceVersion"]), ("BOOKMARK", &json!("2")));
    assert_eq!(watch.brief().await, "BOOKMARK");
    assert_eq!(start.elapsed().as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn watch_ends_after_its_time_limit() {
    let server = ApiServer::new();
    make(&server, "a").await;
    let start = Instant::now();
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&timeoutSeconds=7")).await;
    assert_eq!(watch.brief().await, "ADDED a");
    assert_eq!(watch.next().await, Next::End);
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(server.open_watches(), 0);
}

#[tokio::test]
async fn slow_watch_is_closed() {
    let server = ApiServer::builder().watch_buffer(3).build();
    let mut slow = watch(&server, &format!("{MAPS}?watch=true")).await;
    for name in ["a", "b", "c"] {
        make(&server, name).await;
    }
    assert_eq!(server.open_watches(), 1);
    make(&server, "d").await;
    assert_eq!(server.open_watches(), 0);
    assert_eq!(
        [slow.brief().await, slow.brief().await, slow.brief().await],
        ["ADDED a", "ADDED b", "ADDED c"]
    );
    assert_eq!(slow.next().await, Next::End);
}

#[tokio::test]
async fn test_can_break_open_watches() {
    let server = ApiServer::new();
    let path = format!("{MAPS}?watch=true");
    let mut ended = watch(&server, &path).await;
    assert_eq!(server.break_watches(|user| user == "b", WatchBreak::End), 0);
    assert_eq!(server.break_watches(|user| user == "a", WatchBreak::End), 1);
    assert_eq!(ended.next().await, Next::End);
    let mut cut = watch(&server, &path).await;
    assert_eq!(server.break_watches(|_| true, WatchBreak::Cut), 1);
    assert!(matches!(cut.next().await, Next::Junk(_)));
    assert_eq!(cut.next().await, Next::Broken);
    let mut garbage = watch(&server, &path).await;
    assert_eq!(server.break_watches(|_| true, WatchBreak::Garbage), 1);
    assert!(matches!(garbage.next().await, Next::Junk(_)));
    make(&server, "a").await;
    assert_eq!(garbage.brief().await, "ADDED a");
}
