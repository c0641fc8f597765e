//! S2 across terms: a write that one term admitted does not continue in the next.

use crate::support::{Probe, Probing, TERM, assert_lost, lead, lead_in, stage, write};
use futures_util::FutureExt;
use kube_leader_gate::{WriteGate, WriteGateLayer, gate::ResponseFuture, leadership::Loss};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Wake, Waker},
};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service};

#[test]
fn s2_write_of_revoked_term_is_cut_off_later() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let first = lead_in(&grantor, 1);
    let mut old = task::spawn(service.call(write()));
    assert_pending!(old.poll());

    // Lost and won again before any poll.
    first.end(Loss::Taken);
    let _second = lead_in(&grantor, 3);
    assert!(leadership.can_write());
    assert!(old.is_woken());
    probe.answer();
    assert_lost(&assert_ready_err!(old.poll()), Loss::Taken);
    assert_eq!((probe.polls(), probe.drops()), (1, 1));

    let mut new = task::spawn(service.call(write()));
    assert_ready_ok!(new.poll());
}

#[test]
fn s2_write_of_expired_term_is_cut_off_later() {
    let (grantor, leadership, clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let _first = lead_in(&grantor, 1);
    let mut old = task::spawn(service.call(write()));
    assert_pending!(old.poll());
    clock.advance(TERM);
    let _second = lead_in(&grantor, 3);
    assert!(old.is_woken(), "the next grant ends the one before");
    assert_lost(&assert_ready_err!(old.poll()), Loss::Expired);
    assert_eq!((probe.polls(), probe.drops()), (1, 1));
}

#[test]
fn s2_end_of_later_term_wakes_its_writes() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    for term in 1..4 {
        let grant = lead_in(&grantor, term);
        let mut response = task::spawn(service.call(write()));
        assert_pending!(response.poll());
        assert!(!response.is_woken(), "term {term}");
        grant.end(Loss::Deleted);
        assert!(response.is_woken(), "term {term}");
        assert_lost(&assert_ready_err!(response.poll()), Loss::Deleted);
    }
}

/// A service above may hold a response future across terms without polling it.
#[test]
fn s2_unpolled_write_is_not_sent_in_next_term() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let first = lead(&grantor);
    let mut old = task::spawn(service.call(write()));
    drop(first);
    let _second = lead_in(&grantor, 2);
    assert_lost(&assert_ready_err!(old.poll()), Loss::Abandoned);
    assert_eq!((probe.polls(), probe.drops()), (0, 1));
}

#[test]
fn s2_deadline_in_next_term_is_reported_as_expiry() {
    let (grantor, leadership, clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    lead(&grantor).end(Loss::Taken);
    let _second = lead_in(&grantor, 2);
    let mut response = task::spawn(service.call(write()));
    assert_pending!(response.poll());
    clock.advance(TERM);
    assert_lost(&assert_ready_err!(response.poll()), Loss::Expired);
}

/// Admits a write and polls it once, exactly when observers learn of the grant. That is before the writes of earlier
/// grants are woken, so this write is woken with them.
struct AtTheGrant {
    service: Mutex<WriteGate<Probe>>,
    response: Mutex<Option<task::Spawn<ResponseFuture<Probing>>>>,
}

impl Wake for AtTheGrant {
    fn wake(self: Arc<Self>) {
        let mut response = task::spawn(self.service.lock().unwrap().call(write()));
        assert_pending!(response.poll());
        assert!(!response.is_woken());
        *self.response.lock().unwrap() = Some(response);
    }
}

#[test]
fn s2_loss_wakes_write_after_spurious_wakeup() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let at = Arc::new(AtTheGrant { service: Mutex::new(service), response: Mutex::default() });
    let mut changes = leadership.changes();
    assert!(changes.next().now_or_never().is_some(), "the present state");
    let waker = Waker::from(at.clone());
    let mut observing = pin!(changes.next());
    assert!(observing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());

    let grant = lead(&grantor);
    let mut response = at.response.lock().unwrap().take().expect("the observer was woken");
    assert!(response.is_woken(), "with the writes of earlier grants");
    assert_pending!(response.poll());
    assert!(!response.is_woken());
    grant.end(Loss::Taken);
    assert!(response.is_woken());
    let polls = probe.polls();
    assert_lost(&assert_ready_err!(response.poll()), Loss::Taken);
    assert_eq!(probe.polls(), polls);
}
