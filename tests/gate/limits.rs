//! S2 and S15 with timeouts and concurrency limits, on either side of the gate.

use crate::support::{
    Body, Probe, TERM, WRITE, assert_lost, assert_not_leader, described, lead, read, stage, write,
};
use http::Request;
use kube_leader_gate::{ErrLeadershipLost, WriteGateLayer, leadership::Loss};
use std::time::Duration;
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceBuilder, timeout::error::Elapsed};
use tower_test::{assert_request_eq, mock};

const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn s2_timeout_above_gate_ends_write_count() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = ServiceBuilder::new()
        .timeout(PATIENCE)
        .layer(WriteGateLayer::new(leadership.clone()))
        .service(probe.clone());
    let _grant = lead(&grantor);
    let error = service.call(write()).await.unwrap_err();
    assert!(error.is::<Elapsed>() && ErrLeadershipLost::find(&*error).is_none(), "{error:?}");
    assert_eq!((probe.drops(), leadership.writes_under_way()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn s2_loss_wins_over_timeout_below_gate() {
    let (grantor, leadership, clock) = stage();
    let probe = Probe::default();
    let mut service = ServiceBuilder::new()
        .layer(WriteGateLayer::new(leadership.clone()))
        .timeout(PATIENCE)
        .service(probe.clone());
    let _grant = lead(&grantor);
    let error = service.call(write()).await.unwrap_err();
    assert!(error.is::<Elapsed>(), "{error:?}");
    assert_eq!(leadership.writes_under_way(), 0);

    let mut response = task::spawn(service.call(write()));
    assert_pending!(response.poll());
    clock.advance(TERM);
    tokio::time::advance(PATIENCE * 2).await;
    assert!(response.is_woken(), "by the timeout");
    let polls = probe.polls();
    assert_lost(&assert_ready_err!(response.poll()), Loss::Expired);
    assert_eq!(probe.polls(), polls);
}

#[tokio::test]
async fn s2_gate_judges_write_when_limit_above_admits_it() {
    let (grantor, leadership, clock) = stage();
    let (mut service, mut requests) = mock::spawn_layer::<String, &'static str, _>(
        ServiceBuilder::new()
            .concurrency_limit(1)
            .layer(WriteGateLayer::new(leadership.clone()))
            .layer(described()),
    );
    requests.allow(10);
    let _grant = lead(&grantor);
    assert_ready_ok!(service.poll_ready());
    let mut first = task::spawn(service.call(write()));
    assert_pending!(first.poll());
    assert_pending!(service.poll_ready());
    assert_request_eq!(requests, WRITE).send_response("made");
    assert_ready_ok!(first.poll());
    drop(first);

    clock.advance(TERM);
    assert_ready_ok!(service.poll_ready());
    assert_not_leader(&assert_ready_err!(task::spawn(service.call(write())).poll()));
    // The rejected write has given its slot back.
    assert_ready_ok!(service.poll_ready());
    assert_pending!(task::spawn(requests.next_request()).poll());
}

#[test]
fn s2_cut_off_write_frees_slot_below_gate() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let layers = ServiceBuilder::new()
        .layer(WriteGateLayer::new(leadership.clone()))
        .concurrency_limit(1)
        .service(probe);
    let mut service = mock::Spawn::new(layers);
    let grant = lead(&grantor);
    assert_ready_ok!(service.poll_ready::<Request<Body>>());
    let mut hanging = task::spawn(service.call(write()));
    assert_pending!(hanging.poll());
    assert_pending!(service.poll_ready::<Request<Body>>());
    grant.end(Loss::Taken);
    assert_lost(&assert_ready_err!(hanging.poll()), Loss::Taken);
    // Before the response future is dropped.
    assert_ready_ok!(service.poll_ready::<Request<Body>>());
}

/// tower's limit panics when it is called without the slot that `poll_ready` reserves.
#[test]
fn s15_slot_reserved_below_gate_survives_rejection() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    probe.answer();
    let gate = WriteGateLayer::new(leadership.clone());
    let mut service =
        mock::Spawn::new(gate.layer(ServiceBuilder::new().concurrency_limit(1).service(probe.clone())));
    assert_ready_ok!(service.poll_ready::<Request<Body>>());
    for _ in 0..3 {
        assert_not_leader(&assert_ready_err!(task::spawn(service.call(write())).poll()));
    }
    assert_eq!(probe.calls(), 0);
    // Without another `poll_ready` the slot is still there, for a read and for a write.
    assert_ready_ok!(task::spawn(service.call(read())).poll());
    assert_ready_ok!(service.poll_ready::<Request<Body>>());
    assert_not_leader(&assert_ready_err!(task::spawn(service.call(write())).poll()));
    let _grant = lead(&grantor);
    assert_ready_ok!(task::spawn(service.call(write())).poll());
}
