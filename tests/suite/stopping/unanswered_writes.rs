//! Writes that ended without an answer may still take effect, so the lease is not released before that is over.

use crate::{
    support::{
        FIRST, LEASE, SKEW, SOON, begin_write, build, builder, candidate, gated, is_cut_off, leading, pass,
        releases, until, within, write,
    },
    work::leading::support::SteppedClock,
};
use futures_util::FutureExt;
use http::Request;
use kube_client::Client;
use kube_leader_gate::{
    Election, LeaseTiming,
    election::{LeaseEnd, Running},
    testing::{ApiServer, Fault},
};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use tower::timeout::Timeout;

const SECOND: Duration = Duration::from_secs(1);

/// Ways in which a write ends without an answer while its gate is open.
const WAYS: [&str; 8] = [
    "answered by a backend",
    "dropped",
    "timed out above the gate",
    "timed out below the gate",
    "lost on its way",
    "answer lost",
    "given up by the server",
    "not confirmed by etcd",
];

/// A leader, and a client whose writes end in this way.
async fn leading_with(server: &ApiServer, way: &str) -> (Running, Client) {
    let election = candidate(server, "a");
    let service = server.service().user("a");
    let client = match way {
        "timed out below the gate" => Client::new(Timeout::new(service, SECOND), "default"),
        _ => Client::new(service, "default"),
    };
    let client = election.wrap(client);
    let running = election.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

/// Ends a write in this way. Returns when that was.
async fn end_unanswered(server: &ApiServer, way: &str, a: &Running, client: &Client) -> Instant {
    let fault = match way {
        "lost on its way" => Fault::drop_before(),
        "answer lost" => Fault::drop_after(),
        "given up by the server" => Fault::status(504),
        "not confirmed by etcd" => Fault::status(500),
        _ => Fault::hang_before(),
    };
    let _fault = server.inject(fault.resource("tokenreviews"));
    match way {
        // The backend may answer before it has read all.
        "answered by a backend" => {
            let upload = Request::post("/api/v1/namespaces/default/services/b/proxy/upload");
            let answer = client.send(upload.body(b"bytes".to_vec().into()).unwrap()).await;
            assert!(answer.expect("an answer").status().is_client_error());
        }
        "dropped" => {
            let writing = begin_write(a.candidate(), client).await;
            writing.abort();
            assert!(writing.await.unwrap_err().is_cancelled());
        }
        "timed out above the gate" => assert!(timeout(SECOND, write(client)).await.is_err()),
        _ => assert!(write(client).await.is_err()),
    }
    assert_eq!(a.candidate().leadership().writes_under_way(), 0, "{way}");
    Instant::now()
}

/// How long after `end` the lease was released.
fn released_after(server: &ApiServer, end: Instant) -> Duration {
    releases(server, "a").last().expect("a has released the lease").received.at.saturating_duration_since(end)
}

/// Timers fire up to a millisecond late.
fn is_skew(after: Duration) -> bool {
    after + Duration::from_millis(5) >= SKEW && after < SKEW + SOON
}

#[tokio::test(start_paused = true)]
async fn s4_unanswered_write_delays_the_release() {
    for way in WAYS {
        let server = ApiServer::new();
        let (a, client) = leading_with(&server, way).await;
        let end = end_unanswered(&server, way, &a, &client).await;
        assert_eq!(within(SKEW + SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released, "{way}");
        let after = released_after(&server, end);
        assert!(is_skew(after), "{way}: released {after:?} later");
    }
}

/// The same when the candidate steps down.
#[tokio::test(start_paused = true)]
async fn s4_unanswered_write_delays_a_step_down() {
    for way in WAYS {
        let server = ApiServer::new();
        let (mut a, client) = leading_with(&server, way).await;
        let b = candidate(&server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        let end = end_unanswered(&server, way, &a, &client).await;
        let stepping = tokio::spawn(async move { a.step_down(SECOND * 30).await });
        within(SKEW + SOON, "b leads", b.candidate().elected()).await;
        let after = released_after(&server, end);
        assert!(is_skew(after), "{way}: released {after:?} later");
        assert_eq!(stepping.await.unwrap(), LeaseEnd::Released, "{way}");
    }
}

/// The workload's end drops its write, whichever way it ends.
#[tokio::test(start_paused = true)]
async fn s4_write_dropped_with_workload_delays_the_release() {
    for panics in [false, true] {
        let server = ApiServer::new();
        let election = candidate(&server, "a");
        let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
        let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
        let mut end = None;
        let workload = async {
            leader.elected().await;
            let mut writing = Box::pin(write(&client));
            assert!(timeout(SECOND, &mut writing).await.is_err(), "the write hangs");
            end = Some(Instant::now());
            assert!(!panics, "the workload breaks");
        };
        let run =
            within(SECOND * 8, "the run ends", AssertUnwindSafe(election.run(workload)).catch_unwind()).await;
        assert_eq!(run.is_err(), panics);
        let after = released_after(&server, end.expect("the candidate led"));
        assert!(is_skew(after), "panics: {panics}, released {after:?} later");
    }
}

#[tokio::test(start_paused = true)]
async fn s4_release_waits_for_last_unanswered_write() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    end_unanswered(&server, "dropped", &a, &client).await;
    pass(SECOND * 3).await;
    let last = end_unanswered(&server, "answer lost", &a, &client).await;
    write(&client).await.expect("the write is answered");
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert!(is_skew(released_after(&server, last)));
}

/// A guard: answered writes do not delay a stop, also if the answer is a refusal. Neither do old unanswered ones.
#[tokio::test(start_paused = true)]
async fn s4_stop_after_answered_writes_is_immediate() {
    for status in [None, Some(403), Some(409), Some(422), Some(429)] {
        let server = ApiServer::new();
        let (a, client) = leading(&server, "a").await;
        end_unanswered(&server, "dropped", &a, &client).await;
        pass(SKEW + SOON).await;
        let _refused = status.map(|code| server.inject(Fault::status(code).resource("tokenreviews")));
        assert_eq!(write(&client).await.is_ok(), status.is_none());
        let stopping = within(Duration::from_millis(10), "the candidate stops", a.stop()).await;
        assert_eq!(stopping, LeaseEnd::Released, "{status:?}");
    }
}

/// Renewals fail while a candidate releases the lease, so the deadline cuts its write off: the lease has no time
/// left.
#[tokio::test(start_paused = true)]
async fn s4_write_cut_off_at_deadline_prevents_release() {
    for for_good in [true, false] {
        let server = ApiServer::new();
        let election = build(&server, "a", builder("a").drain_timeout(SECOND * 60)).unwrap();
        let client = gated(&server, &election, "a");
        let mut a = election.start();
        within(FIRST, "the candidate leads", a.candidate().elected()).await;
        let b = candidate(&server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        let _hang = server.inject(Fault::hang_before().user("a").resource("tokenreviews"));
        let hanging = begin_write(a.candidate(), &client).await;
        let refused = server.inject(Fault::status(500).user("a").verb("update").resource("leases"));
        let ending = tokio::spawn(async move {
            let stopped = if for_good { a.stop().await } else { a.step_down(SECOND * 30).await };
            (stopped, Instant::now())
        });
        let result = within(SECOND * 11, "the write is cut off", hanging).await.unwrap();
        assert!(is_cut_off(&result), "{result:?}");
        let cut_off = Instant::now();
        drop(refused);
        within(SECOND * 7, "b leads", b.candidate().elected()).await;
        let led_after = cut_off.elapsed();
        assert!(led_after + Duration::from_millis(10) >= SKEW, "b leads {led_after:?} after the write's end");
        let (stopped, at) = ending.await.unwrap();
        assert_eq!(stopped, LeaseEnd::LeftToExpire);
        assert!(!for_good || at - cut_off < SOON, "nothing is left to wait for");
        assert!(releases(&server, "a").is_empty());
    }
}

/// The process freezes past its deadline while it waits for a write to finish.
#[tokio::test(start_paused = true)]
async fn s4_suspend_during_stop_prevents_release() {
    for for_good in [true, false] {
        let server = ApiServer::new();
        let clock = SteppedClock::new();
        let election = build(&server, "a", builder("a").clock(Arc::new(clock.clone()))).unwrap();
        let client = gated(&server, &election, "a");
        let mut a = election.start();
        let leader = a.candidate().clone();
        within(FIRST, "the candidate leads", leader.elected()).await;
        let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
        let hanging = begin_write(&leader, &client).await;
        let ending =
            tokio::spawn(async move { if for_good { a.stop().await } else { a.step_down(SECOND).await } });
        until(SOON, "the gate is closed", || !leader.can_write()).await;
        clock.step(SECOND * 12);
        let result = within(SECOND * 2, "the write is cut off", hanging).await.unwrap();
        assert!(is_cut_off(&result), "{result:?}");
        assert_eq!(within(SECOND * 3, "the run ends", ending).await.unwrap(), LeaseEnd::LeftToExpire);
        assert!(releases(&server, "a").is_empty());
    }
}

/// A term may end, and another one begin, before a write of the first can no longer take effect.
#[tokio::test(start_paused = true)]
async fn s4_unanswered_write_delays_release_of_later_term() {
    for how in ["deleted", "expired", "stood down"] {
        let server = ApiServer::new();
        let (mut a, client) = leading(&server, "a").await;
        let (leader, first) = (a.candidate().clone(), a.candidate().term());
        let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
        let hanging = begin_write(&leader, &client).await;
        let refuse = || server.inject(Fault::status(500).verb("update").resource("leases"));
        let refused = (how != "deleted").then(refuse);
        let ended = async {
            let result = within(SECOND * 11, "the write is cut off", hanging).await.unwrap();
            assert!(is_cut_off(&result), "{result:?}");
            drop((refused, hang));
            Instant::now()
        };
        let cut_off = match how {
            "deleted" => {
                server.delete("outsider", LEASE).unwrap();
                ended.await
            }
            "expired" => ended.await,
            _ => {
                let (stopped, cut_off) = tokio::join!(a.step_down(Duration::ZERO), ended);
                assert_eq!(stopped, LeaseEnd::LeftToExpire);
                cut_off
            }
        };
        let second = within(SECOND * 3, "the candidate leads again", leader.elected()).await;
        assert_ne!(Some(second), first);
        write(&client).await.expect("the candidate leads");
        assert_eq!(within(SKEW + SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released, "{how}");
        let after = released_after(&server, cut_off);
        assert!(is_skew(after), "{how}: released {after:?} later");
    }
}

/// With other timings too: the margin is the lease duration minus the renew deadline.
#[tokio::test(start_paused = true)]
async fn s4_release_waits_for_safety_margin() {
    let server = ApiServer::new();
    let timing = LeaseTiming::default();
    let election: Election = build(&server, "a", builder("a").timing(timing)).unwrap();
    let client = gated(&server, &election, "a");
    let a = election.start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let end = end_unanswered(&server, "dropped", &a, &client).await;
    let margin = timing.safety_margin();
    assert_eq!(within(margin + SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released);
    let after = released_after(&server, end);
    assert!(after >= margin, "{after:?}");
}

/// A write that hangs is cut off at the deadline: nothing is renewed for it. Its outcome is unknown, so the lease is left to
/// expire.
#[tokio::test(start_paused = true)]
async fn s4_give_way_cuts_off_write_at_the_deadline() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    let left = a.candidate().leadership().time_left().unwrap();
    a.candidate().give_way();
    until(SOON, "the gate is closed", || !a.candidate().can_write()).await;
    pass(left.saturating_sub(2 * SOON)).await;
    assert!(!writing.is_finished());
    assert!(is_cut_off(&within(3 * SOON, "the write is cut off", writing).await.unwrap()));
    pass(SKEW).await;
    assert!(releases(&server, "a").is_empty());
}
