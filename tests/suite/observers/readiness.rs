//! The readiness probe: whether the election can do its work, never whether it leads.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, candidate, leading, lease, pass, releases, until, within,
};
use kube_leader_gate::{
    Candidate, LeaseTiming,
    election::ErrUnhealthy,
    health::Health,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Status and body of `/readyz` and the status of `/livez`.
fn probe(candidate: &Candidate) -> (u16, String, u16) {
    let health = Health::new(candidate.clone(), Duration::from_secs(20));
    let ready = health.answer("/readyz");
    (ready.status, ready.body, health.answer("/livez").status)
}

fn ready() -> (u16, String, u16) {
    (200, "ok\n".to_owned(), 200)
}

#[tokio::test(start_paused = true)]
async fn replicas_are_ready_once_lease_is_seen() {
    let server = ApiServer::new();
    let a = candidate(&server, "a").start();
    let unseen = a.candidate().check_ready().unwrap_err();
    assert_eq!(unseen, ErrUnhealthy::NotSeen(a.candidate().lease().clone()));
    assert_eq!(unseen.to_string(), "the election has not seen the lease default/operator yet");
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let b = candidate(&server, "b").start();
    assert!(b.candidate().check_ready().is_err());
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    for _ in 0..20 {
        assert_eq!([probe(a.candidate()), probe(b.candidate())], [ready(), ready()]);
        pass(Duration::from_secs(5)).await;
    }
    assert!(a.candidate().is_leader() && !b.candidate().is_leader(), "a follower is ready too");
}

/// Not for a moment, since a kubelet may ask at any moment.
#[tokio::test(start_paused = true)]
async fn missing_permission_keeps_replica_unready_until_granted() {
    for (fault, reason) in [
        (Fault::forbidden().resource("leases"), "lease calls fail: read: forbidden: 403"),
        (Fault::forbidden().resource("leases").verb("get"), "lease calls fail: read: forbidden: 403"),
        (Fault::forbidden().resource("leases").verb("create"), "lease calls fail: acquire: forbidden: 403"),
        (Fault::hang_before().resource("leases"), "lease calls fail: read: timeout"),
    ] {
        let server = ApiServer::new();
        let refused = server.inject(fault);
        let a = candidate(&server, "a").start();
        for _ in 0..5000 {
            assert!(a.candidate().check_ready().is_err(), "{reason}");
            pass(Duration::from_millis(1)).await;
        }
        let (status, body, live) = probe(a.candidate());
        assert_eq!((status, live), (503, 200), "a restart would mend nothing");
        assert!(body.starts_with(&format!("the election is in trouble: {reason}")), "{body}");
        drop(refused);
        until(Duration::from_secs(5), "it is ready", || a.candidate().check_ready().is_ok()).await;
        assert_eq!(probe(a.candidate()), ready());
    }
}

/// The lease may be polled instead.
#[tokio::test(start_paused = true)]
async fn missing_watch_permission_does_not_matter() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::forbidden().verb("watch"));
    let (a, _) = leading(&server, "a").await;
    until(SOON, "the watch is refused", || refused.hits() > 0).await;
    let (before, b) = (refused.hits(), candidate(&server, "b").start());
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    until(SOON, "its watch is refused", || refused.hits() > before).await;
    for replica in [&a, &b] {
        assert_eq!((probe(replica.candidate()), replica.candidate().trouble()), (ready(), None));
    }
}

/// One failed call is over before a kubelet has asked three times. Without a watch, only the next renewal can end it.
#[tokio::test(start_paused = true)]
async fn one_failed_renewal_is_trouble_for_a_moment() {
    for watches in [true, false] {
        let server = ApiServer::new();
        let _no_watch = (!watches).then(|| server.inject(Fault::forbidden().verb("watch")));
        let (a, _) = leading(&server, "a").await;
        let once = server.inject(Fault::status(503).verb("update").resource("leases").times(1));
        until(Duration::from_secs(3), "a renewal fails", || once.hits() > 0).await;
        let is_ready = || a.candidate().check_ready().is_ok();
        until(SOON, "it is unready", || !is_ready() && a.candidate().trouble().is_some()).await;
        let over = || is_ready() && a.candidate().trouble().is_none();
        until(Duration::from_secs(1), "it is ready again", over).await;
        assert!(a.candidate().can_write());
    }
}

#[tokio::test(start_paused = true)]
async fn all_replicas_are_unready_during_an_outage() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let outage = server.inject(Fault::status(503));
    server.break_watches(|_| true, WatchBreak::Cut);
    until(Duration::from_secs(5), "both are unready", || {
        [&a, &b].iter().all(|it| it.candidate().check_ready().is_err())
    })
    .await;
    assert!(a.candidate().can_write(), "the term goes on until its deadline");
    assert_eq!(probe(a.candidate()).2, 200);
    drop(outage);
    until(Duration::from_secs(4), "both are ready", || {
        [&a, &b].iter().all(|it| it.candidate().check_ready().is_ok())
    })
    .await;
}

/// What a follower knows by its watch is knowledge, too: it makes no call while it follows.
#[tokio::test(start_paused = true)]
async fn follower_is_ready_when_it_sees_a_renewal_after_failed_writes() {
    let server = ApiServer::new();
    let timing =
        LeaseTiming::new(Duration::from_secs(6), Duration::from_secs(4), Duration::from_secs(1)).unwrap();
    let of = |identity| build(&server, identity, builder(identity).timing(timing)).unwrap().start();
    let a = of("a");
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = of("b");
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let stall = server.inject(Fault::status(500).resource("leases").writes());
    pass(Duration::from_secs(12)).await;
    assert!(b.candidate().check_ready().is_err(), "it has tried to take the lease");
    // Only a gets through.
    drop(stall);
    let _stall = server.inject(Fault::status(500).resource("leases").writes().user("b"));
    within(Duration::from_secs(5), "a leads again", a.candidate().elected()).await;
    pass(SOON).await;
    assert_eq!((probe(b.candidate()), b.candidate().trouble()), (ready(), None));
}

#[tokio::test(start_paused = true)]
async fn free_and_deleted_leases_leave_replica_ready() {
    let server = ApiServer::new();
    let (mut a, _) = leading(&server, "a").await;
    a.step_down(Duration::ZERO).await;
    assert_eq!(releases(&server, "a").len(), 1);
    assert_eq!(probe(a.candidate()), ready());
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    server.delete("outsider", LEASE).unwrap();
    until(SOON, "the candidate knows", || !a.candidate().is_leader()).await;
    assert_eq!(probe(a.candidate()), ready());
}

#[tokio::test(start_paused = true)]
async fn nonsense_in_lease_makes_replica_unready() {
    let server = ApiServer::new();
    server.put("x", LEASE, lease(&json!({ "holderIdentity": "x" }))).unwrap();
    let a = candidate(&server, "a").start();
    until(SOON, "a knows x", || a.candidate().holder().is_some()).await;
    let (status, body, live) = probe(a.candidate());
    assert_eq!((status, live), (503, 200));
    assert!(body.contains("the lease makes no sense"), "{body}");
    let trouble = a.candidate().trouble().expect("trouble");
    assert!(trouble.starts_with("the lease makes no sense: "), "{trouble}");
}

#[tokio::test(start_paused = true)]
async fn s10_ended_election_is_not_ready() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let candidate = a.candidate().clone();
    a.stop().await;
    assert_eq!(candidate.check_ready(), Err(ErrUnhealthy::Ended));
    let (status, body, live) = probe(&candidate);
    assert_eq!((status, live), (503, 503));
    assert_eq!(body, "the leader election has ended; restart the process to contend again\n");
}

#[tokio::test(start_paused = true)]
async fn own_conditions_stand_beside_the_elections_reason() {
    let server = ApiServer::new();
    let election = build(&server, "a", builder("a")).unwrap();
    let filled = Arc::new(AtomicBool::new(false));
    let is_filled = filled.clone();
    let health = Health::new(election.candidate(), Duration::ZERO)
        .ready_if(move || if is_filled.load(Ordering::SeqCst) { Ok(()) } else { Err("the caches are empty") })
        .ready_if(|| "1".parse::<u32>().map(drop));
    let lines = |health: &Health| {
        let answer = health.answer("/readyz");
        (answer.status, answer.body.lines().map(|line| line[..20].to_owned()).collect::<Vec<_>>())
    };
    let both = vec!["the election of this".to_owned(), "the caches are empty".to_owned()];
    assert_eq!(lines(&health), (503, both));
    let a = election.start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    assert_eq!(lines(&health), (503, vec!["the caches are empty".to_owned()]));
    assert_eq!(health.answer("/livez").status, 200, "a restart fills no cache");
    filled.store(true, Ordering::SeqCst);
    assert_eq!((health.answer("/readyz").status, &*health.answer("/readyz").body), (200, "ok\n"));
}
