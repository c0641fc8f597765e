//! What is known of the lease may be old: after a watch has begun, after a lost race, and if versions are no numbers.

use super::{
    examples::{Stage, error, seconds},
    odd_looks::{hidden, no_watch},
};
use crate::{
    election::{
        hooks::LeaseCall::{Acquire, Read, Renew},
        lease_watch::WatchNews,
    },
    lease::{ErrLockKind, LeaseEvent, LeaseRecord},
};
use serde_json::json;
use std::time::Duration;

/// A watch begins anew while a renewal is under way. The lease is deleted after the renewal and before the watch begins, so
/// neither shows it, and the read that the new watch asks for is never made.
#[test]
fn s8_call_before_the_watch_settles_no_doubt() {
    let mut stage = Stage::leading();
    no_watch(&mut stage);
    stage.now = stage.now.saturating_add(Duration::from_secs(2));
    let call = stage.call();
    assert_eq!(call.what, Renew);
    let answer = stage.carry_out(&call);
    stage.lease = None; // deleted, and a newcomer makes it anew half a second later
    stage.machine.handle_watch(WatchNews::Up, stage.now);
    stage.machine.handle_answer(answer, stage.now).unwrap();
    stage.calls.clear();
    stage.pass(200);
    assert_eq!(stage.calls.first(), Some(&Read));
}

/// A renewal fails in an outage of a moment, and the watch begins anew with the same lease. Reads still fail, and the deadline
/// depends on renewals alone.
#[test]
fn s9_holder_that_cannot_read_keeps_its_term_after_a_failed_renewal() {
    let mut stage = Stage::leading();
    stage.fails(1, ErrLockKind::Unreachable);
    stage.pass(seconds(2));
    begin_a_watch(&mut stage);
    stage.play(seconds(20), |stage, call| match call.what {
        Read => Err(error(ErrLockKind::Forbidden)),
        _ => stage.carry_out(call),
    });
    assert!(stage.is_open(), "{:?}", stage.calls);
}

/// The same for a candidate whose acquisition of a free lease has failed.
#[test]
fn candidate_that_cannot_read_takes_the_lease_after_a_failed_acquisition() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    stage.fails(1, ErrLockKind::Unreachable);
    stage.pass(1);
    begin_a_watch(&mut stage);
    stage.play(seconds(20), |stage, call| match call.what {
        Read => Err(error(ErrLockKind::Forbidden)),
        _ => stage.carry_out(call),
    });
    assert!(stage.is_open(), "{:?}", stage.calls);
}

/// The watch breaks, and another one begins and shows the lease.
fn begin_a_watch(stage: &mut Stage) {
    no_watch(stage);
    stage.machine.handle_watch(WatchNews::Up, stage.now);
    shows(stage);
}

fn shows(stage: &mut Stage) {
    let shown = LeaseEvent::Seen(stage.record().unwrap());
    stage.machine.handle_watch(WatchNews::Event(shown), stage.now);
}

/// A lock whose versions are no numbers. A call is carried out, and then another candidate takes the lease. The watch shows that
/// before the answer of the call comes.
#[test]
fn s7_theft_during_a_call_closes_the_gate_although_versions_are_no_numbers() {
    for what in [Renew, Read] {
        let mut stage = Stage::leading();
        let spoil = |stage: &mut Stage| {
            let version = json!(format!("v{}", stage.version));
            stage.lease.as_mut().unwrap()["metadata"]["resourceVersion"] = version;
        };
        spoil(&mut stage);
        stage.machine.handle_watch(WatchNews::Up, stage.now);
        stage.pass(0); // reads what has no number
        stage.now = stage.now.saturating_add(Duration::from_secs(if what == Renew { 2 } else { 0 }));
        if what == Read {
            stage.machine.handle_watch(WatchNews::Up, stage.now);
        }
        let call = stage.call();
        assert_eq!(call.what, what);
        let _ = stage.carry_out(&call);
        spoil(&mut stage);
        let answer = Ok(stage.record());
        hidden(&mut stage, |lease| lease["spec"]["holderIdentity"] = json!("thief"));
        spoil(&mut stage);
        shows(&mut stage);
        stage.machine.handle_answer(answer, stage.now).unwrap();
        stage.pass(500);
        assert!(!stage.is_open(), "{:?}", stage.calls);
    }
}

/// An API server whose versions are no numbers. Each event of the watch may be older than what is known.
#[test]
fn events_without_a_number_make_no_storm() {
    let mut stage = Stage::leading();
    for _ in 0..10 {
        let mut object = stage.lease.clone().unwrap();
        object["metadata"]["resourceVersion"] = json!("none");
        let event = LeaseEvent::Seen(LeaseRecord::from_json(object).unwrap());
        stage.machine.handle_watch(WatchNews::Event(event), stage.now);
        stage.pass(100);
    }
    assert!(
        !stage.calls.contains(&Acquire) && stage.calls.iter().filter(|call| **call == Renew).count() <= 1
    );
}

/// A watch begins with the present lease, and shows all that comes after, so what it shows first settles its own doubt.
#[test]
fn first_event_of_a_watch_settles_the_doubt() {
    let mut stage = Stage::leading();
    no_watch(&mut stage);
    stage.machine.handle_watch(WatchNews::Up, stage.now);
    let shown = LeaseEvent::Seen(stage.record().unwrap());
    stage.machine.handle_watch(WatchNews::Event(shown), stage.now);
    stage.pass(seconds(1));
    assert_eq!(stage.calls, []);
}

/// A write has met another version than the one that it was to swap. While an API server that lags shows this one again, the
/// next swap would fail, too.
#[test]
fn news_of_what_a_write_failed_to_swap_settle_no_doubt() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    let shown = stage.record().unwrap();
    hidden(&mut stage, |lease| lease["spec"]["holderIdentity"] = json!("other"));
    stage.pass(1);
    assert_eq!(stage.calls, [Acquire], "another candidate was faster");
    stage.machine.handle_watch(WatchNews::Event(LeaseEvent::Seen(shown)), stage.now);
    stage.pass(seconds(1));
    assert_eq!(stage.calls[..2], [Acquire, Read]);
}
