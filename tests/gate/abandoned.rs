//! S10: a dead election fails closed.

use crate::support::{Probe, assert_lost, lead, lead_in, stage, write};
use kube_leader_gate::{WriteGateLayer, leadership::Loss};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
use tokio_test::{assert_pending, assert_ready_err, task};
use tower::{Layer, Service};

#[test]
fn s10_dropping_the_grant_closes_the_gate() {
    let (leadership, _clock) = stage();
    let grant = lead(&leadership);
    assert!(leadership.can_write());
    drop(grant);
    assert!(leadership.admit().is_none());
    assert!(!leadership.is_leader());
    assert_eq!(leadership.state().lost, Some(Loss::Abandoned));
}

#[test]
fn s10_a_panic_of_whoever_holds_the_grant_closes_the_gate() {
    let (leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let mut response = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _grant = lead(&leadership);
        let response = response.insert(task::spawn(service.call(write())));
        assert_pending!(response.poll());
        panic!("the election fell over");
    }));
    assert!(outcome.is_err());
    assert!(leadership.admit().is_none());
    let mut response = response.expect("it was sent before the panic");
    assert!(response.is_woken());
    assert_lost(&assert_ready_err!(response.poll()), Loss::Abandoned);
    assert_eq!((probe.polls(), probe.drops()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s10_aborting_the_task_that_holds_the_grant_closes_the_gate() {
    let (leadership, _clock) = stage();
    let grant = lead(&leadership);
    let election = tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(grant);
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(leadership.can_write());
    election.abort();
    assert!(election.await.unwrap_err().is_cancelled());
    assert!(leadership.admit().is_none());
}

#[test]
fn s10_an_old_grant_that_is_dropped_late_ends_nothing_else() {
    let (leadership, _clock) = stage();
    let first = lead_in(&leadership, 1);
    let _second = lead_in(&leadership, 2);
    drop(first);
    assert!(leadership.can_write());
}
