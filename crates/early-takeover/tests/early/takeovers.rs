//! Ends that are proven: the successor leads long before the lease runs out.

use crate::pods::{
    after_renewal, create, early, leader_and_follower, path, replica, replica_with, report, report_end,
    terminated, watches,
};
use crate::support::{
    FIRST, LEASE, SETTLE, SOON, annotations, build, builder, hammer, leading, pass, spec, until, within,
    writers,
};
use kube_leader_gate::{
    LeaseTiming,
    election::Priority,
    testing::{ApiServer, Fault},
};
use serde_json::json;
use std::time::Duration;
use tokio::{task::JoinSet, time::Instant};

#[tokio::test(start_paused = true)]
async fn ended_container_is_succeeded_long_before_expiry() {
    let server = ApiServer::new();
    let a = replica(&server, "a");
    let mut writing = JoinSet::new();
    hammer(&mut writing, &server, &a, "a");
    let a = a.start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = replica(&server, "b");
    hammer(&mut writing, &server, &b, "b");
    let b = b.start();
    watches(&server, "b").await;
    pass(SOON).await;
    drop(a);
    report_end(&server, "a");
    let began = Instant::now();
    pass(SETTLE.saturating_sub(SOON)).await;
    assert_eq!(spec(&server)["holderIdentity"], "a", "a write of a may still take effect");
    within(SOON * 2, "b leads", b.candidate().elected()).await;
    assert!(began.elapsed() >= SETTLE, "{:?}", began.elapsed());
    pass(SOON).await;
    writing.abort_all();
    pass(Duration::from_secs(20)).await;
    assert!(b.candidate().is_leader());
    assert_eq!(writers(&server), ["a", "b"]);
    let said = annotations(&server)["kube-leader-gate/holder-pod"].take();
    assert!(said.as_str().is_some_and(|said| said.contains(r#""holder":"b""#)), "{said}");
    let said = annotations(&server)["kube-leader-gate/claim"].take();
    assert!(said.as_str().is_some_and(|said| said.ends_with(" b")), "{said}");
    assert_eq!(annotations(&server).as_object().map(serde_json::Map::len), Some(3), "nothing of a is left");
    assert_eq!(server.reads("b", "get", "pods"), 1);
    assert_eq!(spec(&server)["leaseTransitions"], 1);
}

/// The lower one does not ask, but succeeds.
#[tokio::test(start_paused = true)]
async fn holder_of_higher_priority_is_succeeded_too() {
    let server = ApiServer::new();
    let ranked = |name, key| {
        let priority = Priority::ranked(key, ["high", "low"]).expect("a priority");
        replica_with(&server, name, |early| early, builder(name).priority(priority)).start()
    };
    let a = ranked("a", "high");
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = ranked("b", "low");
    watches(&server, "b").await;
    pass(SOON).await;
    drop(a);
    report_end(&server, "a");
    within(SETTLE + SOON * 2, "b leads", b.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn settle_time_can_be_zero_or_the_margin() {
    for settle in [Duration::ZERO, LeaseTiming::fast().safety_margin()] {
        let server = ApiServer::new();
        let a = replica(&server, "a").start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        let b = replica_with(&server, "b", |early| early.settle(settle), builder("b")).start();
        watches(&server, "b").await;
        drop(a);
        report_end(&server, "a");
        let began = Instant::now();
        within(settle + SOON, "b leads", b.candidate().elected()).await;
        assert!(began.elapsed() >= settle, "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn container_between_two_starts_is_succeeded() {
    let server = ApiServer::new();
    let (a, b) = leader_and_follower(&server).await;
    drop(a);
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    report(&server, "a", 0, &waiting, &terminated(&after_renewal(&server, 1)));
    within(SETTLE + SOON, "b leads", b.candidate().elected()).await;
}

/// The follower begins after the end.
#[tokio::test(start_paused = true)]
async fn later_follower_takes_over_too() {
    let server = ApiServer::new();
    let a = replica(&server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    drop(a);
    report_end(&server, "a");
    let b = replica(&server, "b").start();
    within(SETTLE + SOON, "b leads", b.candidate().elected()).await;
}

/// The process had sent a renewal before its end. It arrives while the follower looks at the pod.
#[tokio::test(start_paused = true)]
async fn late_renewal_of_ended_process_delays_nothing() {
    let server = ApiServer::new();
    let (a, b) = leader_and_follower(&server).await;
    drop(a);
    let slow = server.inject(Fault::delay_before(SOON).resource("pods").verb("get").times(1));
    report_end(&server, "a");
    until(SETTLE + SOON, "b reads the pod", || slow.hits() > 0).await;
    let late = after_renewal(&server, 1).replace('Z', ".000000Z");
    let renew = |lease: &mut serde_json::Value| {
        let before = lease["spec"]["renewTime"].take();
        let claim = &mut lease["metadata"]["annotations"]["kube-leader-gate/claim"];
        *claim = claim.as_str().unwrap().replace(before.as_str().unwrap(), &late).into();
        lease["spec"]["renewTime"] = late.into();
    };
    server.edit("a", LEASE, renew).unwrap();
    within(SETTLE + SOON * 2, "b leads", b.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn one_of_many_followers_takes_over() {
    let server = ApiServer::new();
    let a = replica(&server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let names: Vec<_> = (0..8).map(|it| format!("b{it}")).collect();
    let followers: Vec<_> = names.iter().map(|name| replica(&server, name).start()).collect();
    for name in &names {
        watches(&server, name).await;
    }
    drop(a);
    report_end(&server, "a");
    let leaders = || followers.iter().filter(|it| it.candidate().is_leader()).count();
    until(SETTLE + SOON, "a follower leads", || leaders() == 1).await;
    pass(Duration::from_secs(30)).await;
    assert_eq!(leaders(), 1);
    assert_eq!(spec(&server)["leaseTransitions"], 1, "the others follow the new holder");
}

/// It is opt-in, on both sides.
#[tokio::test(start_paused = true)]
async fn replica_without_the_setting_waits() {
    let server = ApiServer::new();
    let a = replica(&server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = build(&server, "b", builder("b")).unwrap().start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    drop(a);
    report_end(&server, "a");
    pass(Duration::from_secs(12)).await;
    assert!(!b.candidate().is_leader());
    within(Duration::from_secs(4), "b leads", b.candidate().elected()).await;
    assert_eq!(server.reads("b", "watch", "pods") + server.reads("b", "get", "pods"), 0);
    // What it leaves of a in the lease says nothing of b.
    let c = replica(&server, "c").start();
    until(SOON, "c knows b", || c.candidate().holder().is_some()).await;
    drop(b);
    report_end(&server, "a");
    pass(Duration::from_secs(10)).await;
    assert!(!c.candidate().is_leader() && server.reads("c", "watch", "pods") == 0);

    let server = ApiServer::new();
    let a = leading(&server, "a").await;
    create(&server, "a");
    let b = replica(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    drop(a);
    report_end(&server, "a");
    pass(Duration::from_secs(12)).await;
    assert!(!b.candidate().is_leader(), "a has not said in which pod it runs");
}

#[tokio::test(start_paused = true)]
async fn follower_makes_one_watch_and_no_other_request() {
    let server = ApiServer::new();
    let (a, b) = leader_and_follower(&server).await;
    pass(Duration::from_secs(240)).await;
    assert!(a.candidate().is_leader());
    assert_eq!(server.reads("b", "watch", "pods"), 1);
    assert_eq!(server.reads("b", "get", "pods"), 0);
    assert_eq!(
        server.reads("a", "watch", "pods") + server.reads("a", "get", "pods"),
        0,
        "a leader watches none"
    );
    a.stop().await;
    within(SOON, "b leads", b.candidate().elected()).await;
    let ends = server.open_watches();
    assert_eq!(ends, 1, "b's watch of the lease; it no longer watches a pod");
}

/// The identity need not be the pod's name.
#[tokio::test(start_paused = true)]
async fn pod_is_found_by_the_annotation() {
    let server = ApiServer::new();
    let uid = create(&server, "pod-of-a");
    let setting = early(&server, "pod-of-a");
    let a = build(&server, "a", builder("a with a uid").pod_uid(uid).layer_lock(setting)).unwrap().start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = replica(&server, "b").start();
    watches(&server, "b").await;
    drop(a);
    assert!(server.object(&path("a")).is_none());
    report_end(&server, "pod-of-a");
    within(SETTLE + SOON, "b leads", b.candidate().elected()).await;
}

/// It polls, and what it reads shows the same as a watch.
#[tokio::test(start_paused = true)]
async fn candidate_that_may_not_watch_leases_takes_over_too() {
    let server = ApiServer::new();
    let _polled = server.inject(Fault::forbidden().user("b").resource("leases").verb("watch"));
    let (a, b) = leader_and_follower(&server).await;
    drop(a);
    report_end(&server, "a");
    let poll = LeaseTiming::fast().retry_period().mul_f64(1.2);
    within(SETTLE + poll + SOON, "b leads", b.candidate().elected()).await;
}
