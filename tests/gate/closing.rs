//! S4 at the gate: close it, let admitted writes finish, drain.

use crate::support::{
    ALMOST, PATH, Probe, STEP, TERM, WRITE, assert_lost, assert_not_leader, gate, lead, lead_in, stage, write,
};
use futures_util::FutureExt;
use http::Request;
use kube_leader_gate::{
    WriteGateLayer,
    leadership::{Loss, Term},
};
use std::time::Duration;
use tokio::time::Instant;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service};
use tower_test::assert_request_eq;

const BOUND: Duration = Duration::from_secs(10);

#[tokio::test]
async fn s4_closed_gate_finishes_old_writes_and_rejects_new() {
    let (grantor, leadership, _clock) = stage();
    let (mut service, mut requests) = gate(&leadership);
    requests.allow(10);
    let _grant = lead(&grantor);
    assert_ready_ok!(service.poll_ready());
    let mut admitted = task::spawn(service.call(write()));
    assert_pending!(admitted.poll());
    let request = assert_request_eq!(requests, WRITE);

    grantor.close();
    assert!(leadership.is_leader() && !leadership.can_write());
    assert_eq!(leadership.term(), Some(Term::new("uid", 1)));
    assert_not_leader(&assert_ready_err!(task::spawn(service.call(write())).poll()));
    assert_pending!(admitted.poll());
    request.send_response("made");
    assert_eq!(assert_ready_ok!(admitted.poll()).into_body(), "made");
    assert_pending!(task::spawn(requests.next_request()).poll());
}

#[test]
fn s4_deadline_ends_writes_behind_closed_gate() {
    let (grantor, leadership, clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let grant = lead(&grantor);
    let mut admitted = task::spawn(service.call(write()));
    grantor.close();
    clock.advance(ALMOST);
    assert_pending!(admitted.poll());
    // The drain goes on while the lease is renewed. The renewal does not admit new writes.
    grant.extend(leadership.now().saturating_add(TERM)).unwrap();
    assert!(!leadership.can_write() && leadership.admit().is_none());
    clock.advance(ALMOST);
    assert_pending!(admitted.poll());
    clock.advance(STEP);
    assert_lost(&assert_ready_err!(admitted.poll()), Loss::Expired);
}

#[test]
fn s4_next_grant_opens_closed_gate() {
    let (grantor, leadership, _clock) = stage();
    for ended_before in [true, false] {
        let grant = lead(&grantor);
        grantor.close();
        let replaced = (!ended_before).then_some(grant);
        let _next = lead_in(&grantor, 2);
        assert!(leadership.admit().is_some());
        assert!(!leadership.state().closing);
        drop(replaced);
        assert!(leadership.can_write());
    }
}

#[test]
fn s4_observers_see_one_close() {
    let (grantor, leadership, _clock) = stage();
    let mut changes = leadership.changes();
    let mut change = || changes.next().now_or_never().flatten();
    assert!(change().is_some(), "the present state");
    grantor.close();
    assert!(change().is_none(), "a follower has nothing to close");
    let _grant = lead(&grantor);
    assert!(change().is_some_and(|state| !state.closing));
    grantor.close();
    assert!(change().is_some_and(|state| state.closing));
    grantor.close();
    assert!(change().is_none());
}

#[tokio::test(start_paused = true)]
async fn s4_drain_waits_for_last_write() {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let _grant = lead(&grantor);
    let (first, second) = (service.call(write()), service.call(write()));
    grantor.close();
    let mut drain = task::spawn(leadership.drain(BOUND));
    assert_pending!(drain.poll());
    drop(first);
    assert_pending!(drain.poll());
    drop(second);
    assert!(drain.is_woken());
    assert_eq!(assert_ready!(drain.poll()), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn s4_drain_after_revoke_waits_for_cut_off_write() {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let grant = lead(&grantor);
    let mut cut_off = task::spawn(service.call(write()));
    assert_pending!(cut_off.poll());
    grant.end(Loss::Taken);
    let mut drain = task::spawn(leadership.drain(BOUND));
    assert_pending!(drain.poll(), "it has not been dropped yet");
    assert_lost(&assert_ready_err!(cut_off.poll()), Loss::Taken);
    assert!(drain.is_woken());
    assert_eq!(assert_ready!(drain.poll()), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn s4_drain_times_out_and_reports_remaining_writes() {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let _grant = lead(&grantor);
    let held = [service.call(write()), service.call(write())];
    grantor.close();
    let begin = Instant::now();
    let left = leadership.drain(BOUND).await.unwrap_err();
    assert_eq!(begin.elapsed(), BOUND);
    assert_eq!(left.writes, 2);
    assert_eq!(left.to_string(), "2 admitted writes did not finish within the drain timeout");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn s4_drain_can_be_dropped_and_restarted() {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let _grant = lead(&grantor);
    let held = service.call(write());
    grantor.close();
    for _ in 0..3 {
        let mut drain = task::spawn(leadership.drain(BOUND));
        assert_pending!(drain.poll());
    }
    let (mut one, mut other) = (task::spawn(leadership.drain(BOUND)), task::spawn(leadership.drain(BOUND)));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    drop(held);
    assert_eq!(assert_ready!(one.poll()), Ok(()));
    assert_eq!(assert_ready!(other.poll()), Ok(()));
    assert_eq!(leadership.writes_under_way(), 0);
}

#[tokio::test(start_paused = true)]
async fn s4_drain_without_open_writes_ends_at_once() {
    let (grantor, leadership, _clock) = stage();
    assert_eq!(leadership.drain(Duration::ZERO).await, Ok(()));
    let _grant = lead(&grantor);
    drop(leadership.admit());
    grantor.close();
    assert!(leadership.admit().is_none());
    assert_eq!(leadership.drain(Duration::ZERO).await, Ok(()));
}

/// A backend may answer before it has read a body, and the gate cannot look into one of this type.
#[tokio::test]
async fn s4_answer_settles_no_body_for_a_backend() {
    const BACKEND: &str = "/api/v1/namespaces/default/services/b/proxy/upload";
    for (request, settled) in [
        (Request::post(PATH), true),
        (Request::post(BACKEND), false),
        (Request::get(BACKEND).header("connection", "upgrade"), true),
    ] {
        let (grantor, leadership, _clock) = stage();
        let _grant = lead(&grantor);
        let probe = Probe::default();
        probe.answer();
        let mut service = WriteGateLayer::new(leadership.clone()).layer(probe);
        assert_eq!(service.call(request.body("{}").unwrap()).await.unwrap().into_body(), "done");
        assert_eq!(leadership.unanswered().is_none(), settled);
    }
}
