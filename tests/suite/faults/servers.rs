//! Lost answers, odd servers and missing permissions: the candidate still contends, in order.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, candidate, free, gated, is_not_leader, leading, lease, lease_writes,
    pass, spec, until, within, write,
};
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use kube_client::{Client, client::Body};
use kube_leader_gate::{
    LeaseTiming,
    election::LeaseEnd,
    lease::LeasePool,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::json;
use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::time::{sleep_until, timeout};
use tower::service_fn;

fn held_by(server: &ApiServer, holder: &str, seconds: u64) {
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": seconds });
    server.put("outsider", LEASE, lease(&spec)).unwrap();
}

/// Two swaps without an answer: the first one took effect, the second one did not. No other candidate exists.
#[tokio::test(start_paused = true)]
async fn own_unanswered_claim_is_not_a_duplicate_identity() {
    let server = ApiServer::new();
    free(&server);
    let _landed = server.inject(Fault::hang_after().verb("update").resource("leases").times(1));
    let _lost = server.inject(Fault::hang_before().verb("update").resource("leases").times(1));
    let a = build(&server, "a", builder("a").timing(LeaseTiming::default())).unwrap().start();
    within(Duration::from_secs(30), "it leads after two lost answers", a.candidate().elected()).await;
}

/// Its deadline has passed, its attempt to take the lease again has failed, and then it stops: the lease still names
/// it as the holder.
#[tokio::test(start_paused = true)]
async fn stop_after_failed_reacquisition_releases_lease() {
    for seconds in [2, 600] {
        let server = ApiServer::new();
        let (a, _) = leading(&server, "a").await;
        let no_writes = server.inject(Fault::status(500).verb("update").resource("leases"));
        until(Duration::from_secs(11), "the gate closes", || !a.candidate().can_write()).await;
        pass(Duration::from_secs(seconds)).await;
        drop(no_writes);
        assert_eq!(a.stop().await, LeaseEnd::Released);
        assert_eq!(spec(&server)["holderIdentity"], "", "after {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_writes_are_retried_less_and_less() {
    for fault in [Fault::forbidden(), Fault::status(409), Fault::status(500), Fault::drop_before()] {
        let server = ApiServer::new();
        free(&server);
        let fault = server.inject(fault.verb("update").resource("leases"));
        let _a = build(&server, "a", builder("a").timing(LeaseTiming::default())).unwrap().start();
        pass(Duration::from_secs(600)).await;
        let (writes, reads) = (fault.hits(), server.reads("a", "get", "leases"));
        assert!((15..=60).contains(&writes), "{writes} writes in 600 s at a retry period of 26 s");
        assert!(reads <= 3 * writes, "{reads} reads for {writes} writes");
    }
}

/// Rule S9: a follower can wait longer and longer, but a leader has a deadline.
#[tokio::test(start_paused = true)]
async fn s9_leader_keeps_trying_to_renew() {
    let server = ApiServer::new();
    let a = build(&server, "a", builder("a").timing(LeaseTiming::default())).unwrap().start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let term = a.candidate().term();
    let refused = server.inject(Fault::status(500).verb("update").resource("leases"));
    until(Duration::from_secs(27), "a renewal is refused", || refused.hits() > 0).await;
    pass(Duration::from_secs(60)).await;
    assert!(refused.hits() >= 60, "{} attempts in 60 s", refused.hits());
    drop(refused);
    until(Duration::from_secs(1), "the candidate renews", || {
        a.candidate().leadership().time_left() > Some(Duration::from_secs(100))
    })
    .await;
    assert_eq!(a.candidate().term(), term);
}

/// A leader whose renewals conflict for ever retries quickly, but does not flood the server.
#[tokio::test(start_paused = true)]
async fn endlessly_conflicting_renewals_cause_no_flood() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let conflict = server.inject(Fault::status(409).verb("update").resource("leases"));
    until(Duration::from_secs(11), "the gate closes", || !a.candidate().can_write()).await;
    assert!((10..=60).contains(&conflict.hits()), "{} renewals in 8 s", conflict.hits());
}

/// A restarted container finds its own name in the lease, and the API server refuses updates for a moment.
#[tokio::test(start_paused = true)]
async fn restarted_candidate_with_refused_claim_is_healthy() {
    let server = ApiServer::new();
    held_by(&server, "a", 15);
    let _no = server.inject(Fault::status(500).verb("update").resource("leases"));
    let a = candidate(&server, "a").start();
    pass(SOON).await;
    assert_eq!(a.candidate().holder().as_deref(), Some("a"));
    a.candidate().check(Duration::ZERO).expect("it has only just begun");
}

/// A client outside the election shortens the duration in the lease. The other candidates use that duration, so the
/// holder must not go on.
#[tokio::test(start_paused = true)]
async fn shortened_lease_duration_ends_the_term() {
    let server = ApiServer::new();
    let (a, a_client) = leading(&server, "a").await;
    let first = a.candidate().term().unwrap();
    let no_writes = server.inject(Fault::status(500).verb("update").resource("leases"));
    server.edit("webhook", LEASE, |lease| lease["spec"]["leaseDurationSeconds"] = 1.into()).unwrap();
    until(Duration::from_millis(5), "the gate closes", || !a.candidate().can_write()).await;
    drop(no_writes);
    let second = within(Duration::from_secs(3), "the candidate leads again", a.candidate().elected()).await;
    assert_ne!(first, second);
    assert_eq!(spec(&server)["leaseDurationSeconds"], 15);
    write(&a_client).await.expect("the candidate leads");
}

/// Rule S9, as the timing documents it: an outage begins just before a renewal, calls fail and the last one hangs,
/// and after the outage an answer takes up to the whole call timeout.
#[tokio::test(start_paused = true)]
async fn s9_leader_survives_the_tolerated_outage() {
    const MS: Duration = Duration::from_millis(1);
    for (timing, rounds) in [(LeaseTiming::default(), 48), (LeaseTiming::fast(), 24)] {
        for round in 0..rounds {
            let server = ApiServer::new();
            let a = build(&server, "a", builder("a").timing(timing)).unwrap().start();
            within(FIRST, "the candidate leads", a.candidate().elected()).await;
            let term = a.candidate().term();
            let mut changes = a.candidate().changes();
            assert!(changes.next().await.is_some(), "the present state");
            // The first renewal comes early, by chance. Each later one comes when it is due.
            pass(timing.retry_period() + SOON).await;
            let renewals = lease_writes(&server, "a");
            let due = renewals.last().unwrap().received.at + timing.retry_period();
            sleep_until(due - MS * (1 + round % 10)).await;
            assert_eq!(lease_writes(&server, "a").len(), renewals.len(), "the next renewal is still to come");
            if round % 2 == 0 {
                server.break_watches(|_| true, WatchBreak::Cut);
            }
            // The worst case is a call that is sent just before the end of the outage and hangs.
            let outage = timing.tolerated_outage();
            let hanging =
                outage.min(MS * [50, 100, 200, 300, 500, 1000, 2000, 1_000_000][round as usize % 8]);
            let down = server.inject(Fault::drop_before().resource("leases"));
            pass(outage.saturating_sub(hanging)).await;
            drop(down);
            let hang = server.inject(Fault::hang_before().resource("leases"));
            pass(hanging).await;
            drop(hang);
            let latency =
                timing.call_timeout().saturating_sub(MS * [10, 10, 10, 10, 500][round as usize % 5]);
            let slow = if round % 16 < 8 { Fault::delay_after } else { Fault::delay_before };
            let _slow = server.inject(slow(latency).resource("leases"));
            pass(timing.call_timeout() * 4).await;
            assert_eq!(a.candidate().term(), term, "{timing}: round {round}");
            let seen = std::iter::from_fn(|| changes.next().now_or_never().flatten());
            assert!(seen.into_iter().all(|state| state.lost.is_none()), "{timing}: round {round}");
        }
    }
}

/// The lease is deleted between the evaluation of a read and the start of the watch.
#[tokio::test(start_paused = true)]
async fn follower_notices_deletion_before_watch_starts() {
    let server = ApiServer::new();
    held_by(&server, "x", 15);
    let _read =
        server.inject(Fault::delay_after(Duration::from_secs(1)).verb("get").resource("leases").times(1));
    let _watch = server.inject(Fault::delay_before(Duration::from_millis(500)).verb("watch").times(1));
    let a = candidate(&server, "a").start();
    pass(Duration::from_millis(250)).await;
    server.delete("outsider", LEASE).unwrap();
    pass(Duration::from_secs(2)).await;
    assert_eq!(a.candidate().holder(), None);
    within(Duration::from_secs(15), "it leads once x's time is over", a.candidate().elected()).await;
}

/// A holder that has not yet learned of the deletion may still write. Only this holder may take the lease again at
/// once. The same holds if a user makes the lease anew, without a holder.
#[tokio::test(start_paused = true)]
async fn s6_follower_waits_for_holder_of_deleted_lease() {
    for made_anew in [false, true] {
        let server = ApiServer::new();
        let _deaf = server.inject(Fault::forbidden().verb("watch").user("a"));
        let (a, a_client) = leading(&server, "a").await;
        let b_election = candidate(&server, "b");
        let b_client = gated(&server, &b_election, "b");
        let b = b_election.start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        let deaf = server.inject(Fault::hang_before().user("a").resource("leases"));
        server.delete("outsider", LEASE).unwrap();
        if made_anew {
            server.put("outsider", LEASE, lease(&json!({}))).unwrap();
        }
        let mut writes = 0;
        while a.candidate().can_write() {
            writes += u32::from(write(&a_client).await.is_ok());
            let refused = is_not_leader(&write(&b_client).await);
            test_support::assert_safety!(refused, "both write, made anew: {made_anew}");
            pass(Duration::from_millis(100)).await;
        }
        assert!(writes > 10, "{writes}");
        within(Duration::from_secs(6), "b leads once a's time is over", b.candidate().elected()).await;
        drop(deaf);
    }
}

#[tokio::test(start_paused = true)]
async fn follower_stops_at_once_during_outage() {
    let server = ApiServer::new();
    let (_a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let _hang = server.inject(Fault::hang_before());
    server.break_watches(|_| true, WatchBreak::Cut);
    pass(Duration::from_secs(5)).await;
    within(Duration::from_secs(2), "the candidate stops", b.stop()).await;
}

#[tokio::test(start_paused = true)]
async fn changes_end_when_election_is_dropped() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let mut changes = election.candidate().changes();
    drop(election);
    assert!(changes.next().await.is_some());
    assert!(changes.next().await.is_none());
    assert!(changes.next().await.is_none(), "and may be asked again");
}

/// Making a fresh client takes longer than the call timeout. The client is made once, and used when it is ready.
#[tokio::test]
async fn s9_slow_connect_still_gives_fresh_connection() {
    let (dead, good) = (ApiServer::new(), ApiServer::new());
    let _hang = dead.inject(Fault::hang_before());
    let (made, under_way, twice) =
        (AtomicU32::new(0), Mutex::new(None::<Instant>), Arc::new(AtomicU32::new(0)));
    let (services, again) = ((dead.service().user("a"), good.service().user("a")), twice.clone());
    let connect = move || {
        if made.fetch_add(1, Ordering::SeqCst) == 0 {
            return Ok(Client::new(services.0.clone(), "default"));
        }
        // After 2 s, as on a busy machine, another client may be made beside it.
        let earlier = under_way.lock().unwrap().replace(Instant::now());
        let is_early = earlier.is_some_and(|it| it.elapsed() < Duration::from_secs(1));
        again.fetch_add(u32::from(is_early), Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(600));
        *under_way.lock().unwrap() = None;
        Ok(Client::new(services.1.clone(), "default"))
    };
    let timing = LeaseTiming::fast().with_call_timeout(Duration::from_millis(50)).unwrap();
    let election =
        builder("a").timing(timing).build_in(&LeasePool::over(connect).expect("a client")).unwrap();
    let a = election.start();
    within(Duration::from_secs(60), "it leads over the fresh client", a.candidate().elected()).await;
    assert_eq!(twice.load(Ordering::SeqCst), 0);
}

/// On a dead connection a read would wait for ever. What may take long by its nature is not given up.
#[tokio::test(start_paused = true)]
async fn only_a_plain_read_without_an_answer_is_given_up() {
    let server = ApiServer::new();
    let a = candidate(&server, "a");
    let mute = service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    let client = a.wrap(Client::new(mute, "default"));
    let running = a.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    for (method, path, is_given_up) in [
        ("GET", "/api/v1/pods", true),
        ("GET", "/api/v1/namespaces/default/pods/a", true),
        ("GET", "/api/v1/pods?watch=true", false),
        ("GET", "/api/v1/namespaces/default/pods/a/log?follow=true", false),
        ("GET", "/api/v1/namespaces/default/services/a/proxy/x", false),
        ("POST", "/api/v1/namespaces/default/pods", false),
    ] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let ended = timeout(Duration::from_secs(600), client.send(request)).await.is_ok();
        assert_eq!(ended, is_given_up, "{method} {path}");
    }
}
