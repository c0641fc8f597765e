//! What a preempted holder does, and how long its successor waits.

use crate::{
    locks::flawed::{Flaw, flawed_from},
    support::priority::{KEY, annotations, hammer, leading_as, ranked, write_every, writers},
    support::{
        FIRST, LEASE, SOON, build, builder, gated, is_not_leader, lease, lease_writes, pass, spec, until,
        within, write,
    },
};
use kube_leader_gate::{
    LeaseTiming,
    election::{LeaseEnd, Priority},
    leadership::Loss,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::json;
use std::time::Duration;
use tokio::{task::JoinSet, time::Instant};

const HANDOVER: &str = "kube-leader-gate/handover";

/// A holder that never acknowledges: client-go's, Istio's, a crashed or frozen one.
fn held_by_foreign(server: &ApiServer, seconds: u64) {
    let mut held = lease(
        &json!({ "holderIdentity": "go", "leaseDurationSeconds": seconds, "leaseTransitions": 3,
                       "acquireTime": "2026-01-02T03:04:05.000000Z", "renewTime": "2026-01-02T03:04:05.000000Z" }),
    );
    held["metadata"]["annotations"] = json!({ KEY: "low" });
    server.put("go", LEASE, held).unwrap();
}

/// The gate closes when the watch reports the preemption, and admitted writes finish. Only then does the successor
/// begin.
#[tokio::test(start_paused = true)]
async fn s7_preemption_closes_gate_and_lets_writes_finish() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let slow = server.inject(Fault::delay_after(Duration::from_secs(3)).resource("tokenreviews").user("a"));
    let writer = low_client.clone();
    let admitted = tokio::spawn(async move { write(&writer).await });
    until(SOON, "a write is under way", || slow.hits() == 1).await;
    let election = ranked(&server, "b", "high");
    let mut writing = JoinSet::new();
    hammer(&mut writing, gated(&server, &election, "b"));
    let high = election.start();
    until(SOON, "the lease is taken", || spec(&server)["holderIdentity"] == "b").await;
    until(Duration::from_millis(5), "the gate is closed", || !low.candidate().can_write()).await;
    assert!(low.candidate().is_leader() && low.candidate().leadership().state().closing);
    assert!(is_not_leader(&write(&low_client).await));
    assert_eq!(annotations(&server)[HANDOVER], "from 0 to 1");
    pass(Duration::from_millis(2800)).await;
    assert!(!high.candidate().is_leader() && high.candidate().holder().as_deref() == Some("b"));
    within(SOON * 2, "the higher one leads", high.candidate().elected()).await;
    admitted.await.unwrap().expect("the write was not cut off");
    assert_eq!(low.candidate().leadership().state().lost, Some(Loss::Taken));
    pass(SOON).await;
    assert_eq!(writers(&server), ["a", "b"]);
}

/// A write that hangs is cut off at the deadline. The holder does not acknowledge that, so the successor waits for
/// the end of the lease.
#[tokio::test(start_paused = true)]
async fn s4_unfinished_writes_prevent_acknowledgement() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let stuck = tokio::spawn(async move { write(&low_client).await });
    until(SOON, "a write is under way", || hang.hits() == 1).await;
    let began = Instant::now();
    let high = ranked(&server, "b", "high").start();
    until(Duration::from_secs(11), "the write is cut off", || stuck.is_finished()).await;
    assert_eq!(low.candidate().leadership().state().lost, Some(Loss::Expired));
    pass(Duration::from_secs(4)).await;
    assert_eq!(lease_writes(&server, "a").len(), 1, "its acquisition, and nothing else");
    within(Duration::from_secs(2), "the higher one leads", high.candidate().elected()).await;
    assert!(began.elapsed() >= Duration::from_millis(14_800), "{:?}", began.elapsed());
}

/// A holder that does not know how to acknowledge: the successor waits for the duration that the holder had written.
#[tokio::test(start_paused = true)]
async fn s6_successor_waits_full_duration_for_silent_holder() {
    for seconds in [5, 15, 137] {
        let server = ApiServer::new();
        held_by_foreign(&server, seconds);
        let election = ranked(&server, "b", "high");
        let client = gated(&server, &election, "b");
        let high = election.start();
        let began = Instant::now();
        until(SOON, "the lease is taken", || spec(&server)["holderIdentity"] == "b").await;
        assert_eq!(annotations(&server), json!({ KEY: "high", HANDOVER: "from 3 to 4" }));
        // The next candidate waits for both.
        assert_eq!(spec(&server)["leaseDurationSeconds"], seconds.max(15));
        let leads =
            within(Duration::from_secs(seconds + 1), "the candidate leads", high.candidate().elected());
        let refused = async {
            pass(Duration::from_millis(seconds * 1000 - 100)).await;
            assert!(is_not_leader(&write(&client).await));
        };
        let (term, ()) = tokio::join!(leads, refused);
        let after = began.elapsed();
        assert!(after >= Duration::from_secs(seconds), "{after:?}");
        assert!(after < Duration::from_millis(seconds * 1000 + 50), "{after:?}");
        assert_eq!(term.transitions(), 4);
        assert_eq!(annotations(&server), json!({ KEY: "high" }));
        assert_eq!(spec(&server)["leaseDurationSeconds"], 15);
        // The grant is as long as any other.
        let left = high.candidate().leadership().time_left().unwrap();
        assert!(left > Duration::from_millis(9900) && left <= Duration::from_secs(10), "{left:?}");
        pass(Duration::from_secs(30)).await;
        assert_eq!(high.candidate().term(), Some(term));
    }
}

/// After a preemption the new leader is like any other: a lapsed term begins anew.
#[tokio::test(start_paused = true)]
async fn s1_lapsed_term_ends_after_preemption() {
    let server = ApiServer::new();
    held_by_foreign(&server, 5);
    let high = ranked(&server, "b", "high").start();
    let first = within(Duration::from_secs(6), "the candidate leads", high.candidate().elected()).await;
    let outage = server.inject(Fault::drop_before());
    until(Duration::from_secs(11), "the gate closes", || !high.candidate().can_write()).await;
    drop(outage);
    let second =
        within(Duration::from_secs(3), "the candidate leads again", high.candidate().elected()).await;
    assert_eq!(second.transitions(), first.transitions() + 1);
}

/// The preempting candidate dies, stops, or restarts under its name while the old holder may still write.
#[tokio::test(start_paused = true)]
async fn s6_next_candidate_also_waits_for_preempted_holder() {
    for how in ["dies", "stops", "restarts", "is deleted"] {
        let server = ApiServer::new();
        let timing =
            LeaseTiming::new(Duration::from_secs(25), Duration::from_secs(22), Duration::from_secs(2));
        let low = build(&server, "a", builder("a").timing(timing.unwrap())).unwrap();
        let mut writing = JoinSet::new();
        write_every(&mut writing, gated(&server, &low, "a"), 20);
        let low = low.start();
        within(FIRST, "the candidate leads", low.candidate().elected()).await;
        let _deaf = server.inject(Fault::hang_before().user("a").resource("leases"));
        server.break_watches(|_| true, WatchBreak::Cut);
        let third = ranked(&server, "c", "middle");
        write_every(&mut writing, gated(&server, &third, "c"), 20);
        let third = third.start();
        let high = ranked(&server, "b", "high");
        write_every(&mut writing, gated(&server, &high, "b"), 20);
        let high = high.start();
        until(SOON, "the lease is taken", || {
            let holder = spec(&server)["holderIdentity"].clone();
            holder == "b" || holder == "c"
        })
        .await;
        pass(Duration::from_secs(1)).await;
        let holder = spec(&server)["holderIdentity"].as_str().unwrap().to_owned();
        let (first, second) = if holder == "b" { (high, third) } else { (third, high) };
        let again = match how {
            "stops" => {
                assert_eq!(first.stop().await, LeaseEnd::LeftToExpire);
                None
            }
            "is deleted" => {
                server.delete("outsider", LEASE).unwrap();
                Some(first)
            }
            "restarts" => {
                drop(first);
                let again = ranked(&server, &holder, "high");
                write_every(&mut writing, gated(&server, &again, &holder), 20);
                Some(again.start())
            }
            _ => {
                drop(first);
                None
            }
        };
        until(Duration::from_secs(23), "a's deadline", || !low.candidate().can_write()).await;
        let leads =
            || again.as_ref().is_some_and(|it| it.candidate().can_write()) || second.candidate().can_write();
        until(Duration::from_secs(60), how, leads).await;
        pass(SOON * 5).await;
        let writers = writers(&server);
        // After a deletion the lower candidate may be faster. It is then preempted in its turn.
        assert!((2..=3).contains(&writers.len()) && writers[0] == "a", "{how}: {writers:?}");
    }
}

/// The old holder is disconnected from the API server: it writes until its deadline, and learns nothing. The successor
/// waits for that, whichever of its own writes were lost or not answered.
#[tokio::test(start_paused = true)]
async fn s6_successor_waits_for_disconnected_holder() {
    for lost in 0..=3 {
        let server = ApiServer::new();
        let (low, low_client) = leading_as(&server, "a", "low").await;
        let _deaf = server.inject(Fault::hang_before().user("a").resource("leases"));
        server.break_watches(|_| true, WatchBreak::Cut);
        let election = ranked(&server, "b", "high");
        let mut writing = JoinSet::new();
        hammer(&mut writing, low_client);
        hammer(&mut writing, gated(&server, &election, "b"));
        let update = |fault: Fault| fault.user("b").verb("update").resource("leases");
        let _faults = (lost > 0).then(|| {
            let landed = server.inject(update(Fault::hang_after()).times(1));
            (landed, server.inject(update(Fault::hang_before()).times(lost)))
        });
        let high = election.start();
        if lost == 0 {
            until(SOON, "the lease is taken", || spec(&server)["holderIdentity"] == "b").await;
            pass(Duration::from_secs(5)).await;
            assert!(low.candidate().can_write(), "it knows nothing");
        }
        let bound = if lost == 0 { 11 } else { 30 };
        within(Duration::from_secs(bound), "the higher one leads", high.candidate().elected()).await;
        assert!(!low.candidate().can_write());
        pass(SOON).await;
        assert_eq!(writers(&server), ["a", "b"]);
    }
}

/// The watch breaks during the swap. The new watch first reports the state before the swap.
#[tokio::test(start_paused = true)]
async fn s6_old_watch_event_does_not_end_wait() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let _deaf = server.inject(Fault::hang_before().user("a").resource("leases"));
    server.break_watches(|user| user == "a", WatchBreak::Cut);
    let slow = server.inject(
        Fault::delay_before(Duration::from_secs(1)).user("b").verb("update").resource("leases").times(1),
    );
    let election = ranked(&server, "b", "high");
    let mut writing = JoinSet::new();
    hammer(&mut writing, low_client);
    hammer(&mut writing, gated(&server, &election, "b"));
    let high = election.start();
    until(SOON, "the swap is under way", || slow.hits() == 1).await;
    assert_eq!(server.break_watches(|user| user == "b", WatchBreak::End), 1);
    within(Duration::from_secs(16), "the higher one leads", high.candidate().elected()).await;
    assert!(!low.candidate().can_write());
    pass(SOON).await;
    assert_eq!(writers(&server), ["a", "b"]);
}

/// A holder is preempted during a stop. It drains and acknowledges, and has no lease to release.
#[tokio::test(start_paused = true)]
async fn stopping_holder_acknowledges_preemption() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let _slow = server.inject(Fault::delay_after(Duration::from_secs(2)).resource("tokenreviews").user("a"));
    let admitted = tokio::spawn(async move { write(&low_client).await });
    until(SOON, "a write is under way", || low.candidate().leadership().writes_under_way() == 1).await;
    let stopping = tokio::spawn(low.stop());
    pass(SOON).await;
    let began = Instant::now();
    let high = ranked(&server, "b", "high").start();
    within(Duration::from_secs(3), "the higher one leads", high.candidate().elected()).await;
    assert!(began.elapsed() >= Duration::from_millis(1800), "{:?}", began.elapsed());
    admitted.await.unwrap().expect("the write was not cut off");
    assert_eq!(stopping.await.unwrap(), LeaseEnd::Released);
    assert_eq!(spec(&server)["holderIdentity"], "b");
}

/// A policy refuses the acknowledgement, and the successor dies. The lease expires, and the old holder takes it.
#[tokio::test(start_paused = true)]
async fn refused_acknowledgement_does_not_stop_contention() {
    let server = ApiServer::new();
    let priority = Priority::ranked("low", ["high", "low"]).unwrap();
    let low = flawed_from(&server, "a", builder("a").priority(priority), Flaw::OwnNameOnly("a")).start();
    within(FIRST, "the candidate leads", low.candidate().elected()).await;
    let high = ranked(&server, "b", "high").start();
    until(SOON, "the lease is taken", || spec(&server)["holderIdentity"] == "b").await;
    pass(SOON).await;
    drop(high);
    within(Duration::from_secs(20), "the candidate leads again", low.candidate().elected()).await;
}

/// A preemption request by the holder itself is none.
#[tokio::test(start_paused = true)]
async fn holder_ignores_preemption_by_itself() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let term = low.candidate().term();
    let forged =
        |lease: &mut serde_json::Value| lease["metadata"]["annotations"][HANDOVER] = "from 0 to 0".into();
    server.edit("outsider", LEASE, forged).unwrap();
    pass(SOON).await;
    write(&low_client).await.expect("the candidate leads");
    assert_eq!(low.candidate().term(), term);
    pass(Duration::from_secs(3)).await;
    assert_eq!(annotations(&server), json!({ KEY: "low" }), "gone with a renewal");
}

/// A restored backup undoes the preemption. The old holder starts a new term, so its gate does not stay closed for
/// ever. It waits for the one that preempted it, which has said nothing.
#[tokio::test(start_paused = true)]
async fn undone_preemption_starts_a_new_term() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let backup = server.object(LEASE).unwrap();
    let _slow = server.inject(Fault::delay_after(Duration::from_secs(2)).resource("tokenreviews").times(1));
    let _admitted = tokio::spawn({
        let client = low_client.clone();
        async move { write(&client).await }
    });
    until(SOON, "a write is under way", || low.candidate().leadership().writes_under_way() == 1).await;
    let high = ranked(&server, "b", "high").start();
    until(SOON, "the gate is closed", || !low.candidate().can_write()).await;
    drop(high);
    server
        .edit("outsider", LEASE, |lease| {
            lease["spec"] = backup["spec"].clone();
            lease["metadata"]["annotations"] = backup["metadata"]["annotations"].clone();
        })
        .unwrap();
    within(Duration::from_secs(18), "the candidate leads again", low.candidate().elected()).await;
    assert_eq!(low.candidate().term().unwrap().transitions(), 1);
}
