//! Which line is logged when it matters, and which one is not.

use super::heard::{Event, Heard};
use crate::{
    support::priority::with,
    support::{LEASE, SKEW, SOON, begin_write, leading, lease, pass, steal, until},
};
use kube_leader_gate::{
    election::{LeaseEnd, Priority},
    testing::{ApiServer, Fault},
};
use serde_json::{Value, json};
use std::time::Duration;

const HELD_BY_A_WRITE: &str = "a write ended without an answer";

/// What was logged at `info` and above after the first `before` events.
fn since(heard: &Heard, before: usize) -> Vec<Event> {
    let mut events = heard.events().split_off(before);
    events.retain(|it| it.level != "debug");
    events
}

/// Where the first message that begins with `words` stands.
fn place(events: &[Event], words: &str) -> Option<usize> {
    events.iter().position(|it| it.message.starts_with(words))
}

#[tokio::test(start_paused = true)]
async fn clean_stop_logs_three_lines() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let before = heard.events().len();
    assert_eq!(a.stop().await, LeaseEnd::Released);
    let lines: Vec<_> =
        since(&heard, before).iter().map(|it| format!("{} {}", it.level, it.message)).collect();
    assert_eq!(
        lines,
        [
            "info leadership given up: the lease is released next",
            "info the lease was released",
            "info no candidate holds the lease",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn theft_is_a_loss_and_no_release() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let before = heard.events().len();
    steal(&server);
    until(SOON, "the gate closes", || !a.candidate().is_leader()).await;
    let events = since(&heard, before);
    let lost = &events[place(&events, "leadership lost: ").expect("the loss is logged")];
    assert_eq!((&*lost.level, &*lost.values["loss"]), ("warn", "\"taken\""));
    assert_eq!(place(&events, "leadership given up"), None);
}

/// A stop that takes longer than usual says why, and for how long.
#[tokio::test(start_paused = true)]
async fn stop_names_a_write_that_keeps_the_lease() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    a.stop().await;
    writing.await.unwrap().unwrap_err();
    let events = heard.events();
    let at_most = &events[place(&events, HELD_BY_A_WRITE).expect("it is logged")].values["at_most"];
    assert_eq!(*at_most, format!("{SKEW:?}"));
}

#[tokio::test(start_paused = true)]
async fn giving_way_is_logged() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    a.candidate().give_way();
    pass(SOON).await;
    assert!(place(&heard.events(), "giving the lease up for another candidate").is_some());
}

/// The candidate takes the lease back after a pause. That alone does not end the trouble.
#[tokio::test(start_paused = true)]
async fn mutual_preemption_is_over_after_a_quiet_time() {
    const OVER: &str = "no longer: candidates preempt each other in turn";
    let heard = Heard::listen();
    let server = ApiServer::new();
    server.put("x", LEASE, lease(&json!({ "holderIdentity": "x", "leaseDurationSeconds": 15 }))).unwrap();
    let a = with(&server, "a", Priority::new("a", |_| true).unwrap()).start();
    let holds = || a.candidate().holder().as_deref() == Some("a");
    until(SOON, "it preempts the holder", holds).await;
    let preempts = |lease: &mut Value| {
        lease["metadata"]["annotations"] = json!({ "leader.istio.io/holder-key": "x" });
        lease["spec"]["holderIdentity"] = "x".into();
        lease["spec"]["leaseTransitions"] = 7.into();
    };
    server.edit("x", LEASE, preempts).unwrap();
    until(SOON, "it waits", || place(&since(&heard, 0), "candidates preempt each other").is_some()).await;
    pass(Duration::from_secs(8)).await;
    server
        .edit("x", LEASE, |lease| lease["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z".into())
        .unwrap();
    until(Duration::from_secs(8), "it preempts again", holds).await;
    pass(Duration::from_secs(30)).await;
    assert_eq!(place(&heard.events(), OVER), None, "it may be preempted again");
    pass(Duration::from_secs(60)).await;
    assert!(place(&heard.events(), OVER).is_some());
}
