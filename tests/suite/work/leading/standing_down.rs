//! An election that steps down, and contends again later.

use super::support::{Journal, lead, lead_with};
use crate::locks::flawed::{Flaw, flawed};
use crate::support::{
    FIRST, LEASE, SKEW, SOON, build, builder, candidate, gated, is_cut_off, is_not_leader, leading, lease,
    lease_writes, pass, priority::ASKED, releases, spec, until, within, write,
};
use futures_util::FutureExt;
use kube_leader_gate::{
    LeaseTiming,
    election::{LeaseEnd, Priority},
    testing::{ApiServer, Fault},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

const PAUSE: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn step_down_lets_another_lead_then_contends_again() {
    let server = ApiServer::new();
    let (mut a, a_client) = leading(&server, "a").await;
    let leader = a.candidate().clone();
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let stepping = tokio::spawn(async move { (a.step_down(PAUSE).await, a) });
    within(SOON, "b leads", b.candidate().elected()).await;
    assert!(!leader.is_leader() && is_not_leader(&write(&a_client).await));
    assert_eq!(leader.leadership().state().lost, Some(kube_leader_gate::leadership::Loss::Released));
    drop(b);
    pass(Duration::from_secs(29)).await;
    assert!(!leader.is_leader() && !stepping.is_finished(), "b's lease has run out, and a is still away");
    leader.check(Duration::ZERO).expect("healthy");
    let (stopped, a) = within(Duration::from_secs(2), "the candidate contends", stepping).await.unwrap();
    assert_eq!(stopped, LeaseEnd::Released);
    within(SOON, "the candidate leads again", leader.elected()).await;
    write(&a_client).await.expect("the candidate leads");
    assert_eq!(a.stop().await, LeaseEnd::Released);
}

/// Work that takes 3 s to end, within its grace. The lease is given away by the program, or since the priority has changed.
#[tokio::test(start_paused = true)]
async fn s11_work_that_gives_way_is_waited_for_and_rests() {
    for by_priority in [false, true] {
        let server = ApiServer::new();
        let (journal, precedes) = (Journal::default(), Arc::new(AtomicBool::new(true)));
        let objects = precedes.clone();
        let priority = Priority::new("low", move |_| objects.load(Ordering::Relaxed)).unwrap();
        let ends = || journal.obedient(Duration::from_secs(3));
        let a = lead_with(&server, "a", builder("a").priority(priority), |_, _| ends());
        until(FIRST, "a works", || journal.begun().len() == 1).await;
        let b = lead(&server, "b", ends());
        until(SOON, "b knows a", || b.leader.holder().is_some()).await;
        if by_priority {
            let ask = |lease: &mut Value| lease["metadata"]["annotations"][ASKED] = "b\nhigh".into();
            server.edit("b", LEASE, ask).unwrap();
            pass(SOON).await;
            precedes.store(false, Ordering::Relaxed);
        } else {
            a.leader.give_way();
        }
        until(Duration::from_secs(6), "b works", || journal.begun().len() == 2).await;
        assert_eq!(journal.most(), 1, "{by_priority}");
        // It leaves the lease to others for a retry period.
        b.shutdown.cancel();
        within(Duration::from_secs(4), "b stops", b.run).await.unwrap().unwrap();
        until(Duration::from_secs(4), "a works again", || journal.begun().len() == 3).await;
        a.leader.give_way();
        until(Duration::from_secs(4), "a has given way", || spec(&server)["holderIdentity"] == "").await;
        let free = Instant::now();
        until(Duration::from_secs(4), "a works once more", || journal.begun().len() == 4).await;
        assert!(free.elapsed() >= Duration::from_millis(1_990), "{:?}", free.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn step_down_without_watch_knows_lease_is_free() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let (mut a, _) = leading(&server, "a").await;
    let leader = a.candidate().clone();
    let stepping = tokio::spawn(async move { (a.step_down(PAUSE).await, a) });
    until(SOON, "the lease is released", || spec(&server)["holderIdentity"] == "").await;
    until(SOON, "and known to be", || leader.holder().is_none()).await;
    let (stopped, _a) = within(2 * PAUSE, "the candidate contends", stepping).await.unwrap();
    assert_eq!(stopped, LeaseEnd::Released);
    within(SOON, "the candidate leads again", leader.elected()).await;
}

/// The order to step down comes during an acquisition: the gate does not open, and the candidate releases the lease.
#[tokio::test(start_paused = true)]
async fn step_down_during_acquisition_releases_without_opening_gate() {
    for fault in [Fault::delay_after, Fault::delay_before] {
        let server = ApiServer::new();
        let slow = server.inject(fault(Duration::from_secs(1)).verb("create").resource("leases").times(1));
        let mut a = candidate(&server, "a").start();
        let leader = a.candidate().clone();
        until(FIRST, "the candidate acquires the lease", || slow.hits() == 1).await;
        let stepping = tokio::spawn(async move { (a.step_down(PAUSE).await, a) });
        let mut opened = false;
        until(Duration::from_secs(2), "the lease is released", || {
            opened |= leader.can_write();
            server.object(LEASE).is_some_and(|lease| lease["spec"]["holderIdentity"] == "")
        })
        .await;
        pass(Duration::from_secs(20)).await;
        assert!(!opened && !leader.is_leader());
        assert_eq!(spec(&server)["holderIdentity"], "");
        let (stopped, _a) = within(PAUSE, "the candidate contends", stepping).await.unwrap();
        assert_eq!(stopped, LeaseEnd::Released);
        within(FIRST, "the candidate leads", leader.elected()).await;
    }
}

/// An unanswered claim takes effect while the candidate stays away. The candidate releases it, so that no other one
/// has to wait for its expiry.
#[tokio::test(start_paused = true)]
async fn late_claim_is_released_after_step_down() {
    for verb in ["create", "update"] {
        let server = ApiServer::new();
        if verb == "update" {
            server.put("outsider", LEASE, lease(&json!({ "holderIdentity": "" }))).unwrap();
        }
        let late = Fault::delay_before(Duration::from_secs(3)).verb(verb).resource("leases").times(1);
        let late = server.inject(late);
        let mut a = flawed(&server, "a", Flaw::Outlives).start();
        let leader = a.candidate().clone();
        until(Duration::from_secs(1), "the candidate acquires the lease", || late.hits() == 1).await;
        let stepping = tokio::spawn(async move { (a.step_down(PAUSE).await, a) });
        let holder = || server.object(LEASE).map(|lease| lease["spec"]["holderIdentity"].clone());
        until(Duration::from_secs(4), "its claim lands and is given back", || {
            releases(&server, "a").len() == 1 && holder() == Some("".into())
        })
        .await;
        pass(Duration::from_secs(20)).await;
        assert!(!leader.is_leader() && leader.leadership().state().lost.is_none(), "the candidate never led");
        assert_eq!(holder(), Some("".into()), "{verb}: it stays away");
        leader.check(Duration::ZERO).expect("healthy");
        let (stopped, _a) = within(PAUSE, "the candidate contends", stepping).await.unwrap();
        assert_eq!(stopped, LeaseEnd::Released, "it has waited for its late claim");
        within(Duration::from_secs(1), "the candidate leads", leader.elected()).await;
    }
}

/// Rule S4: the candidate does not release the lease, so other candidates take it at its expiry, and this one does
/// not take it back.
#[tokio::test(start_paused = true)]
async fn s4_expiring_lease_is_not_retaken_during_step_down() {
    for alone in [true, false] {
        let server = ApiServer::new();
        let (mut a, client) = leading(&server, "a").await;
        let (leader, b) = (a.candidate().clone(), (!alone).then(|| candidate(&server, "b").start()));
        // The deadline cuts the write off, and the lease has no time left for it.
        let refused = server.inject(Fault::status(500).user("a").verb("update").resource("leases"));
        let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
        let hanging = tokio::spawn(async move { write(&client).await });
        until(SOON, "the write is under way", || leader.leadership().writes_under_way() == 1).await;
        let stepping = tokio::spawn(async move { (a.step_down(PAUSE).await, a) });
        let cut_off = within(Duration::from_millis(10_100), "the write is cut off", hanging).await.unwrap();
        assert!(is_cut_off(&cut_off) && !leader.is_leader());
        drop(refused);
        let away = Instant::now();
        let written = lease_writes(&server, "a").len();
        assert_eq!(spec(&server)["holderIdentity"], "a");
        if let Some(b) = &b {
            within(Duration::from_secs(16), "b takes it over", b.candidate().elected()).await;
        }
        tokio::time::sleep_until(away + Duration::from_secs(29)).await;
        assert_eq!(lease_writes(&server, "a").len(), written, "neither renewed nor taken");
        leader.check(Duration::ZERO).expect("it does not lead on purpose");
        let (stopped, _a) = within(Duration::from_secs(2), "the candidate contends", stepping).await.unwrap();
        assert_eq!(stopped, LeaseEnd::LeftToExpire);
        if alone {
            within(SOON, "the candidate leads again", leader.elected()).await;
        }
    }
}

/// Rule S4: a step down was dropped after it had cut a write off. A later stop still waits before it releases the
/// lease.
#[tokio::test(start_paused = true)]
async fn s4_stop_after_dropped_step_down_waits_for_write() {
    for again in [false, true] {
        let server = ApiServer::new();
        let (mut a, client) = leading(&server, "a").await;
        let _hang = server.inject(Fault::hang_after().resource("tokenreviews"));
        let hanging = tokio::spawn(async move { (write(&client).await, Instant::now()) });
        until(SOON, "the write is under way", || a.candidate().leadership().writes_under_way() == 1).await;
        let dropped = tokio::time::timeout(Duration::from_secs(11), a.step_down(PAUSE)).await;
        let (result, cut_off) = hanging.await.unwrap();
        assert!(dropped.is_err() && is_cut_off(&result));
        if again {
            assert!(tokio::time::timeout(SOON, a.step_down(PAUSE)).await.is_err());
        }
        assert_eq!(within(SKEW, "the candidate stops", a.stop()).await, LeaseEnd::Released);
        let after = releases(&server, "a")[0].received.at - cut_off;
        assert!(after >= SKEW, "again: {again}, released {after:?} after the write was cut off");
    }
}

#[tokio::test(start_paused = true)]
async fn step_down_in_outage_is_bounded_and_healthy() {
    let server = ApiServer::new();
    let (mut a, _) = leading(&server, "a").await;
    let leader = a.candidate().clone();
    let outage = server.inject(Fault::hang_before());
    let stepping = tokio::spawn(async move { (a.step_down(PAUSE).await, a) });
    until(SOON, "the gate closes", || !leader.can_write()).await;
    pass(4 * LeaseTiming::fast().call_timeout() + SOON).await;
    assert!(!leader.is_leader());
    pass(Duration::from_secs(25)).await;
    leader.check(Duration::ZERO).expect("healthy");
    drop(outage);
    let (stopped, _a) = within(Duration::from_secs(15), "the candidate contends", stepping).await.unwrap();
    assert_eq!(stopped, LeaseEnd::LeftToExpire);
    within(Duration::from_secs(5), "the candidate leads again", leader.elected()).await;
}

#[tokio::test(start_paused = true)]
async fn follower_that_steps_down_does_not_write() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let mut b = candidate(&server, "b").start();
    let b_leader = b.candidate().clone();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let stepping = tokio::spawn(async move { (b.step_down(PAUSE).await, b) });
    pass(SOON).await;
    a.stop().await;
    pass(Duration::from_secs(29)).await;
    assert!(!b_leader.is_leader());
    assert_eq!(b_leader.holder(), None, "it goes on following");
    let (stopped, _b) = within(Duration::from_secs(2), "the candidate contends", stepping).await.unwrap();
    assert_eq!(stopped, LeaseEnd::Released);
    within(SOON, "b leads", b_leader.elected()).await;
}

/// The step down is dropped half-way: the candidate stays out until the next call. A stop still works.
#[tokio::test(start_paused = true)]
async fn dropped_step_down_still_keeps_candidate_out() {
    for dropped_after in [Duration::ZERO, SOON] {
        for again in [true, false] {
            let server = ApiServer::new();
            let (mut a, client) = leading(&server, "a").await;
            let leader = a.candidate().clone();
            let dropped = tokio::time::timeout(dropped_after, a.step_down(PAUSE)).await;
            assert!(dropped.is_err());
            pass(2 * PAUSE).await;
            assert!(is_not_leader(&write(&client).await));
            if again {
                assert_eq!(a.step_down(Duration::ZERO).await, LeaseEnd::Released);
                within(FIRST, "the candidate leads", leader.elected()).await;
                write(&client).await.expect("the candidate leads");
            }
            assert_eq!(within(SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released);
            assert_eq!(spec(&server)["holderIdentity"], "");
        }
    }
}

/// Waiting calls end with the election and return its result.
#[tokio::test(start_paused = true)]
async fn handle_reports_how_election_ended() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let leader = election.candidate();
    assert!(leader.ended().now_or_never().is_none(), "the election may still run");
    let waiting = {
        let leader = leader.clone();
        tokio::spawn(async move { leader.ended().await })
    };
    let workload = leader.clone();
    election.run(async move { workload.elected().await }).await.unwrap().into_output();
    assert_eq!(within(SOON, "the waiting call ends", waiting).await.unwrap(), Ok(LeaseEnd::Released));
    assert_eq!(leader.ended().now_or_never(), Some(Ok(LeaseEnd::Released)), "ever after");

    // The deadline cuts a write off, and the lease has no time left for it.
    let server = ApiServer::new();
    let election = build(&server, "b", builder("b")).unwrap();
    let (leader, client) = (election.candidate(), gated(&server, &election, "b"));
    let _refused = server.inject(Fault::status(500).verb("update").resource("leases"));
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let workload = async {
        leader.elected().await;
        let _left_behind = tokio::spawn(async move { write(&client).await });
        until(SOON, "the write is under way", || leader.leadership().writes_under_way() == 1).await;
    };
    let finished = within(Duration::from_millis(10_700), "the candidate stops", election.run(workload)).await;
    assert_eq!(finished.unwrap().lease, LeaseEnd::LeftToExpire);
    assert_eq!(leader.ended().now_or_never(), Some(Ok(LeaseEnd::LeftToExpire)));

    let (c, _) = leading(&ApiServer::new(), "c").await;
    let leader = c.candidate().clone();
    drop(c);
    assert!(within(SOON, "the waiting call ends", leader.ended()).await.is_err());
}
