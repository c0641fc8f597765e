//! Pods that cannot be read: the election works as without early takeover.

use crate::{
    pods::{create, leader_and_follower, path, replica, report_end, watches},
    support::{FIRST, SETTLE, SOON, build, builder, pass, spec, until, within},
};
use http::Request;
use kube_leader_gate::{
    kube_client::{Client, client::Body},
    testing::{ApiServer, Fault, WatchBreak},
};
use kube_leader_gate_early_takeover::EarlyTakeover;
use std::time::Duration;
use tokio::time::Instant;
use tower::ServiceExt;

const TROUBLE: &str = "the holder's pod cannot be watched; its end is not noticed early: ";

#[tokio::test(start_paused = true)]
async fn unreadable_pods_leave_the_election_as_it_was() {
    let faults: [fn() -> Fault; 4] =
        [Fault::forbidden, Fault::hang_before, Fault::drop_before, || Fault::status(500)];
    for fault in faults {
        let server = ApiServer::new();
        let _unreadable = server.inject(fault().resource("pods"));
        let a = replica(&server, "a").start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        let b = replica(&server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        pass(Duration::from_secs(120)).await;
        assert!(a.candidate().is_leader(), "a renews");
        assert_eq!(a.candidate().trouble(), None);
        let trouble = b.candidate().trouble().expect("trouble");
        assert!(trouble.starts_with(TROUBLE), "{trouble}");
        a.stop().await;
        within(SOON, "b leads", b.candidate().elected()).await;
        until(SOON, "it looks at no pod", || b.candidate().trouble().is_none()).await;
        let a = replica(&server, "a").start();
        until(SOON, "a knows b", || a.candidate().holder().is_some()).await;
        drop(b);
        report_end(&server, "b");
        let began = Instant::now();
        within(Duration::from_secs(16), "a leads", a.candidate().elected()).await;
        assert!(began.elapsed() > Duration::from_secs(12), "{:?}", began.elapsed());
    }
}

/// A candidate that may not watch asks for the watch ever more rarely.
#[tokio::test(start_paused = true)]
async fn forbidden_watch_is_asked_for_in_growing_pauses() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::forbidden().resource("pods"));
    let (_a, _b) = {
        let a = replica(&server, "a").start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        (a, replica(&server, "b").start())
    };
    pass(Duration::from_secs(600)).await;
    assert!((10..40).contains(&refused.hits()), "{} requests in ten minutes", refused.hits());
}

/// Each watch shows the pod, and then fails. That it has shown something is no success.
#[tokio::test(start_paused = true)]
async fn watch_that_opens_and_fails_is_asked_for_in_growing_pauses() {
    let server = ApiServer::new();
    let broken = server.inject(Fault::break_watch(WatchBreak::Expired).resource("pods"));
    let a = replica(&server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = replica(&server, "b").start();
    until(SOON, "there is trouble", || b.candidate().trouble().is_some()).await;
    for _ in 0..600 {
        pass(Duration::from_secs(1)).await;
        assert!(b.candidate().trouble().is_some_and(|it| it.starts_with(TROUBLE)));
    }
    assert!((10..40).contains(&broken.hits()), "{} requests in ten minutes", broken.hits());
    drop(broken);
    until(Duration::from_secs(90), "it is over", || b.candidate().trouble().is_none()).await;
}

/// The trouble says how to mend it, and ends with it.
#[tokio::test(start_paused = true)]
async fn only_a_forbidden_watch_asks_for_permission() {
    for (fault, advised) in [(Fault::forbidden(), true), (Fault::status(500), false)] {
        let server = ApiServer::new();
        let refused = server.inject(fault.resource("pods"));
        let a = replica(&server, "a").start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        let b = replica(&server, "b").start();
        until(SOON, "there is trouble", || b.candidate().trouble().is_some()).await;
        let trouble = b.candidate().trouble().expect("trouble");
        let advice = ". To do: grant it get and watch on pods, by a Role";
        assert!(trouble.starts_with(TROUBLE) && trouble.ends_with(advice) == advised, "{trouble}");
        drop(refused);
        until(Duration::from_secs(60), "it is over", || b.candidate().trouble().is_none()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn broken_watch_begins_again() {
    for how in [WatchBreak::End, WatchBreak::Cut, WatchBreak::Garbage] {
        let server = ApiServer::new();
        let (a, b) = leader_and_follower(&server).await;
        pass(SOON).await;
        assert_eq!(server.break_watches(|user| user == "b", how), 2, "of the lease and of the pod");
        until(Duration::from_secs(5), "it begins again", || server.reads("b", "watch", "pods") == 2).await;
        drop(a);
        report_end(&server, "a");
        within(SETTLE + SOON, "b leads", b.candidate().elected()).await;
    }
}

/// The watch has a deadline of its own: the server's end of it may be lost with the connection.
#[tokio::test(start_paused = true)]
async fn watch_that_the_server_never_ends_begins_again() {
    let server = ApiServer::new();
    let a = replica(&server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let endless = |mut request: Request<Body>| {
        let uri = request.uri().to_string().replace("timeoutSeconds", "ignored");
        *request.uri_mut() = uri.parse().expect("a URI");
        request
    };
    let client = Client::new(server.service().user("b").map_request(endless), "default");
    let early = EarlyTakeover::of_pod(client, "b").container("manager");
    let builder = builder("b").pod_uid(create(&server, "b"));
    let _b = build(&server, "b", builder.layer_lock(early)).expect("a valid election").start();
    watches(&server, "b").await;
    pass(Duration::from_secs(320)).await;
    assert_eq!(server.reads("b", "watch", "pods"), 1);
    pass(Duration::from_secs(320)).await;
    assert_eq!(server.reads("b", "watch", "pods"), 2);
}

#[tokio::test(start_paused = true)]
async fn failed_read_of_the_pod_is_repeated() {
    for fault in [Fault::status(500), Fault::hang_before(), Fault::drop_before()] {
        let server = ApiServer::new();
        let (a, b) = leader_and_follower(&server).await;
        drop(a);
        let failing = server.inject(fault.resource("pods").verb("get").times(1));
        report_end(&server, "a");
        within(Duration::from_secs(8), "b leads", b.candidate().elected()).await;
        assert_eq!(failing.hits(), 1);
        assert!(server.reads("b", "get", "pods") >= 1);
    }
}

/// The takeover itself fails at first.
#[tokio::test(start_paused = true)]
async fn failed_takeover_is_repeated() {
    for fault in [Fault::status(500), Fault::hang_before(), Fault::hang_after(), Fault::drop_after()] {
        let server = ApiServer::new();
        let (a, b) = leader_and_follower(&server).await;
        drop(a);
        let _failing = server.inject(fault.user("b").resource("leases").verb("update").times(1));
        report_end(&server, "a");
        within(Duration::from_secs(8), "b leads", b.candidate().elected()).await;
        assert_eq!(spec(&server)["holderIdentity"], "b");
    }
}

/// The next holder has another pod.
#[tokio::test(start_paused = true)]
async fn follower_watches_the_pod_of_the_present_holder() {
    let server = ApiServer::new();
    let (a, b) = leader_and_follower(&server).await;
    let c = replica(&server, "c").start();
    watches(&server, "c").await;
    drop(a);
    report_end(&server, "a");
    until(SETTLE + SOON, "b or c leads", || b.candidate().is_leader() || c.candidate().is_leader()).await;
    let (leader, name, follower) = if b.candidate().is_leader() { (b, "b", c) } else { (c, "c", b) };
    pass(SOON).await;
    drop(leader);
    server.delete("kubelet", &path("a")).expect("deleted");
    report_end(&server, name);
    within(SETTLE + SOON, "the other one leads", follower.candidate().elected()).await;
}
