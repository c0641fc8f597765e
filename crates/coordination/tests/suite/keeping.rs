//! The `LeaseCandidate` object: it is kept while this candidate contends, and it goes before the lease does.

use crate::support::{
    FIRST, LEASE, SOON, coordinated, free, is_listed, leading, lease_writes, name, pass, path, until,
};
use kube_leader_gate::{
    election::LeaseEnd,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn is_gone(server: &ApiServer, identity: &str) -> bool {
    server.object(&path(identity)).is_none()
}

fn ping(server: &ApiServer, identity: &str, time: &str) {
    server.edit("coordinator", &path(identity), |object| object["spec"]["pingTime"] = time.into()).unwrap();
}

fn is_answered(server: &ApiServer, identity: &str) -> bool {
    let spec = server.object(&path(identity)).expect("the LeaseCandidate")["spec"].take();
    spec["renewTime"].as_str() > spec["pingTime"].as_str()
}

/// A candidate knows the lease before the coordinator can name it: it knows whose place it takes.
#[tokio::test(start_paused = true)]
async fn candidate_reads_the_lease_before_it_is_listed() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::status(500).verb("get").resource("leases"));
    let _watch = server.inject(Fault::status(500).verb("watch").resource("leases"));
    let a = coordinated(&server, "a").start();
    pass(10 * SECOND).await;
    assert!(is_gone(&server, "a"));
    drop(refused);
    until(5 * SECOND, "it is listed", || !is_gone(&server, "a")).await;
    let spec = server.object(&path("a")).unwrap()["spec"].take();
    assert_eq!((&spec["leaseName"], &spec["binaryVersion"]), (&json!("operator"), &json!("1.5.0")));
    drop(a);
}

#[tokio::test(start_paused = true)]
async fn ping_is_answered_with_a_watch_and_without() {
    for watched in [true, false] {
        let server = ApiServer::new();
        let refused = Fault::forbidden().verb("watch").resource("leasecandidates");
        let _refused = (!watched).then(|| server.inject(refused));
        let _a = coordinated(&server, "a").start();
        is_listed(&server, "a").await;
        pass(SECOND).await;
        ping(&server, "a", "2999-01-01T00:00:00.000000Z");
        let bound = if watched { SOON } else { 2 * SECOND + SOON };
        until(bound, "the ping is answered", || is_answered(&server, "a")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ping_is_answered_after_each_broken_watch() {
    for broken in [WatchBreak::End, WatchBreak::Cut, WatchBreak::Garbage] {
        let server = ApiServer::new();
        let _a = coordinated(&server, "a").start();
        is_listed(&server, "a").await;
        pass(SECOND).await;
        assert_eq!(server.break_watches(|user| user == "a", broken), 2);
        ping(&server, "a", "2999-01-01T00:00:00.000000Z");
        // Sooner than a poll would show it.
        until(SECOND, "the ping is answered", || is_answered(&server, "a")).await;
    }
}

/// Each watch shows the object, and then fails. That it has shown something is no success.
#[tokio::test(start_paused = true)]
async fn watch_that_opens_and_fails_is_asked_for_in_growing_pauses() {
    let server = ApiServer::new();
    let _a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    let broken = server.inject(Fault::break_watch(WatchBreak::Expired).resource("leasecandidates"));
    server.break_watches(|_| true, WatchBreak::End);
    pass(600 * SECOND).await;
    assert!((8..40).contains(&broken.hits()), "{} requests in ten minutes", broken.hits());
}

#[tokio::test(start_paused = true)]
async fn follower_and_leader_withdraw_when_they_stop() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = coordinated(&server, "b").start();
    is_listed(&server, "b").await;
    assert_eq!(b.stop().await, LeaseEnd::Released);
    assert!(is_gone(&server, "b"));
    a.stop().await;
    let log = server.write_log();
    let place = |resource: &str, verb: &str| {
        log.iter().rposition(|it| it.user == "a" && it.resource == resource && it.verb == verb).unwrap()
    };
    assert!(place("leasecandidates", "delete") < place("leases", "update"), "before the release");
}

/// Before the deletion the coordinator could name this process again.
#[tokio::test(start_paused = true)]
async fn release_waits_for_a_slow_withdrawal() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let _slow = server.inject(Fault::delay_before(SECOND / 2).verb("delete"));
    assert_eq!(a.stop().await, LeaseEnd::Released);
    let log = server.write_log();
    let at = |resource: &str, verb: &str| {
        log.iter().rposition(|it| it.user == "a" && it.resource == resource && it.verb == verb).unwrap()
    };
    let (deleted, released) = (&log[at("leasecandidates", "delete")], &log[at("leases", "update")]);
    assert!(deleted.completed.unwrap() <= released.received, "{log:#?}");
}

/// Each call that may leave the object, and each way in which it is slow. The candidate stops while the call is under way.
#[tokio::test(start_paused = true)]
async fn stop_withdraws_what_a_call_under_way_leaves() {
    let slow: [fn() -> Fault; 3] = [
        || Fault::delay_before(SECOND),
        || Fault::delay_after(SECOND),
        // It is carried out, and never answered.
        Fault::hang_after,
    ];
    for call in ["create", "update", "get"] {
        for (way, fault) in slow.into_iter().enumerate() {
            for steps_down in [false, true] {
                let server = ApiServer::new();
                if call == "get" {
                    // The object of an earlier process.
                    let earlier = coordinated(&server, "a").start();
                    is_listed(&server, "a").await;
                    drop(earlier);
                }
                let fault = fault().user("a").verb(call).resource("leasecandidates").times(1);
                let fault = server.inject(fault);
                let mut a = coordinated(&server, "a").start();
                if call == "update" {
                    is_listed(&server, "a").await;
                    pass(SECOND).await;
                    ping(&server, "a", "2999-01-01T00:00:00.000000Z");
                }
                until(5 * SECOND, "the call is under way", || fault.hits() == 1).await;
                if steps_down {
                    let _ = timeout(20 * SECOND, a.step_down(60 * SECOND)).await;
                } else {
                    let begun = Instant::now();
                    a.stop().await;
                    assert!(begun.elapsed() < 5 * SECOND, "{call} {way}: {:?}", begun.elapsed());
                }
                assert!(is_gone(&server, "a"), "{call} {way}, steps down: {steps_down}");
                pass(60 * SECOND).await;
                assert!(is_gone(&server, "a"), "{call} {way}, steps down: {steps_down}");
            }
        }
    }
}

/// A dead API server must not delay a stop much, and a refused deletion does not hold the lease.
#[tokio::test(start_paused = true)]
async fn refused_deletion_does_not_hold_the_lease() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let _refused = server.inject(Fault::forbidden().verb("delete"));
    let begun = Instant::now();
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert!(begun.elapsed() < 2 * SECOND, "{:?}", begun.elapsed());
}

/// Otherwise the coordinator would name it again and again.
#[tokio::test(start_paused = true)]
async fn candidate_that_steps_down_is_not_listed_meanwhile() {
    let server = ApiServer::new();
    let (mut a, _) = leading(&server, "a").await;
    let down = tokio::spawn(async move {
        a.step_down(60 * SECOND).await;
        a
    });
    pass(30 * SECOND).await;
    assert!(is_gone(&server, "a"));
    let _a = down.await.unwrap();
    until(SECOND, "it stands again", || !is_gone(&server, "a")).await;
}

#[tokio::test(start_paused = true)]
async fn server_without_the_api_says_so() {
    let server = ApiServer::new();
    free(&server);
    let missing = server.inject(Fault::status(404).resource("leasecandidates"));
    let a = coordinated(&server, "a").start();
    let trouble = || a.candidate().trouble().unwrap_or_default().to_string();
    until(FIRST, "it says so", || trouble().contains("feature gate CoordinatedLeaderElection")).await;
    pass(600 * SECOND).await;
    assert!(!a.candidate().is_leader() && lease_writes(&server, "a").is_empty());
    a.candidate().check_ready().unwrap_err();
    drop(missing);
    until(5 * SECOND, "it is listed", || !is_gone(&server, "a")).await;
}

/// The API server answers a read as if the object were missing, and a creation as if the namespace were.
#[tokio::test(start_paused = true)]
async fn missing_api_is_one_lasting_trouble() {
    let server = ApiServer::new();
    free(&server);
    let missing = server.inject(Fault::status(404).resource("leasecandidates"));
    let a = coordinated(&server, "a").start();
    let trouble = || a.candidate().trouble().unwrap_or_default().to_string();
    until(FIRST, "it says so", || trouble().contains("create: not found")).await;
    let first = trouble();
    let begun = Instant::now();
    while begun.elapsed() < 60 * SECOND {
        pass(SECOND / 20).await;
        assert_eq!(trouble(), first);
    }
    // Each pause is half of the retry period at least, which is 2 s. After it, the object is read and created. The
    // watch pauses by itself.
    let calls = missing.hits();
    assert!(calls <= 60 * 2 + 20, "{calls} calls in a minute");
    drop(missing);
    until(3 * SECOND, "it is listed", || !is_gone(&server, "a")).await;
    until(SOON, "this trouble is over", || !trouble().contains("LeaseCandidate")).await;
}

#[tokio::test(start_paused = true)]
async fn missing_coordinator_is_named_after_a_while() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let trouble = || a.candidate().trouble().unwrap_or_default().to_string();
    server.delete("outsider", LEASE).unwrap();
    pass(44 * SECOND).await;
    assert_eq!(trouble(), "");
    until(8 * SECOND, "it says so", || trouble().starts_with("no coordinator names a holder: ")).await;
    name(&server, "a");
    until(SECOND, "it is over", || trouble().is_empty()).await;
}

/// For longer than a coordinator may take to name a holder.
#[tokio::test(start_paused = true)]
async fn named_holder_and_its_follower_have_no_trouble() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = coordinated(&server, "b").start();
    is_listed(&server, "b").await;
    pass(120 * SECOND).await;
    assert_eq!((a.candidate().trouble(), b.candidate().trouble()), (None, None));
    assert!(a.candidate().is_leader());
}

#[tokio::test(start_paused = true)]
async fn two_elections_with_one_identity_are_named() {
    let server = ApiServer::new();
    let other = json!({ "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate",
                        "metadata": { "name": "a", "namespace": "default" },
                        "spec": { "leaseName": "another", "binaryVersion": "1.0.0", "strategy": "OldestEmulationVersion" } });
    server.put("a", &path("a"), other.clone()).unwrap();
    let a = coordinated(&server, "a").start();
    let trouble = || a.candidate().trouble().unwrap_or_default().to_string();
    until(FIRST, "it says so", || trouble().contains("it stands for the lease another")).await;
    a.stop().await;
    let kept: Value = server.object(&path("a")).expect("it is left alone");
    assert_eq!(kept["spec"], other["spec"]);
}
