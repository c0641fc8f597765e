//! What becomes of the program's watches when its replica begins to lead.

use crate::{
    callers::{Caller, MAPS, get, request},
    process::Sidecar,
    upstream::Upstream,
    wait::{SOON, until, within},
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kube_leader_gate::testing::Fault;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

async fn watch(sidecar: &Sidecar, query: &str) -> Incoming {
    let watch = request("GET", &format!("{MAPS}?watch=1{query}"), "");
    Caller::connect(sidecar.addr).await.send(watch).await.unwrap().into_body()
}

/// The next event. None if the watch has ended.
async fn next(watch: &mut Incoming) -> Option<Value> {
    let frame = within(SOON, "the watch goes on", watch.frame()).await?.unwrap();
    Some(serde_json::from_slice(&frame.into_data().unwrap()).unwrap())
}

fn put(upstream: &Upstream, name: &str) {
    upstream.server.put("outsider", &format!("{MAPS}/{name}"), json!({})).unwrap();
}

/// The event that has this name.
async fn shows(watch: &mut Incoming, name: &str) {
    assert_eq!(next(watch).await.unwrap()["object"]["metadata"]["name"], name);
}

/// Two sidecars. The first one leads.
async fn two(upstream: &Upstream, options: &[&str]) -> [Sidecar; 2] {
    let a = Sidecar::leading(upstream, "a").await;
    let b = Sidecar::start(upstream, "b", options).await;
    b.sees("a").await;
    [a, b]
}

#[tokio::test]
async fn gain_ends_each_watch_with_an_expired_version() {
    let upstream = Upstream::start().await;
    let [mut a, b] = two(&upstream, &[]).await;
    let mut watches = [watch(&b, "").await, watch(&b, "&fieldSelector=metadata.name%3Dx").await];
    put(&upstream, "x");
    for watch in &mut watches {
        shows(watch, "x").await;
    }
    a.process.signal(Signal::TERM);
    for watch in &mut watches {
        let event = next(watch).await.unwrap();
        let status = &event["object"];
        assert_eq!((&event["type"], &status["kind"]), (&json!("ERROR"), &json!("Status")), "{event}");
        assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")), "{event}");
        assert_eq!(next(watch).await, None, "it ends");
    }
    assert_eq!(b.leader().await["can_write"], true, "the gate has opened before");
    let mut later = watch(&b, "").await;
    put(&upstream, "y");
    for name in ["x", "y"] {
        shows(&mut later, name).await;
    }
}

/// The program has perhaps been refused since it listed.
#[tokio::test]
async fn gain_before_the_answer_to_a_watch_ends_it_too() {
    let upstream = Upstream::start().await;
    let [mut a, b] = two(&upstream, &[]).await;
    let late = upstream
        .server
        .inject(Fault::delay_before(Duration::from_secs(2)).verb("watch").resource("configmaps"));
    let gain = async {
        until("the watch is sent", || late.hits() == 1).await;
        a.process.signal(Signal::TERM);
        b.leads().await;
    };
    let (mut watch, ()) = tokio::join!(watch(&b, ""), gain);
    assert_eq!(next(&mut watch).await.unwrap()["object"]["code"], 410);
}

/// The program begins a watch anew that was broken at the gain. It has been refused since it listed.
#[tokio::test]
async fn watch_from_a_version_before_the_gain_ends_too() {
    let upstream = Upstream::start().await;
    let [mut a, b] = two(&upstream, &[]).await;
    put(&upstream, "x");
    let list = get(b.addr, MAPS).await.json();
    a.process.signal(Signal::TERM);
    b.leads().await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut again = watch(&b, &format!("&resourceVersion={version}")).await;
    assert_eq!(next(&mut again).await.unwrap()["object"]["code"], 410);
    assert_eq!(next(&mut again).await, None, "it ends");
    let list = get(b.addr, MAPS).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut later = watch(&b, &format!("&resourceVersion={version}")).await;
    put(&upstream, "y");
    shows(&mut later, "y").await;
}

#[tokio::test]
async fn watch_of_a_leader_goes_on() {
    let upstream = Upstream::start().await;
    let a = Sidecar::leading(&upstream, "a").await;
    let mut watch = watch(&a, "").await;
    for name in ["x", "y"] {
        put(&upstream, name);
        shows(&mut watch, name).await;
    }
}

#[tokio::test]
async fn option_leaves_watches_as_they_are() {
    let upstream = Upstream::start().await;
    let [mut a, b] = two(&upstream, &["--list-again", "false"]).await;
    let mut watch = watch(&b, "").await;
    a.process.signal(Signal::TERM);
    b.leads().await;
    put(&upstream, "x");
    shows(&mut watch, "x").await;
}
