//! S15: reject in `call`, never in `poll_ready`.

use crate::support::{Probe, READ, WRITE, assert_not_leader, described, gate, lead, read, stage, write};
use kube_leader_gate::{ErrNotLeader, WriteGateLayer};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt, buffer::Buffer};
use tower_test::{assert_request_eq, mock};

#[tokio::test]
async fn s15_gate_readiness_is_inner_service_readiness() {
    let (grantor, leadership, _clock) = stage();
    for leading in [false, true] {
        let (mut service, mut requests) = gate(&leadership);
        let _grant = leading.then(|| lead(&grantor));
        requests.allow(0);
        assert_pending!(service.poll_ready());
        requests.allow(1);
        assert!(service.is_woken());
        assert_ready_ok!(service.poll_ready());

        let (mut service, mut requests) = gate(&leadership);
        requests.send_error("worn out");
        let error = assert_ready_err!(service.poll_ready());
        assert!(ErrNotLeader::find(&*error).is_none());
        assert_eq!(error.to_string(), "worn out");
    }
}

#[test]
fn s15_rejected_write_never_touches_inner_service() {
    let (_grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership).layer(probe.clone());
    for _ in 0..10 {
        let mut response = task::spawn(service.call(write()));
        assert_not_leader(&assert_ready_err!(response.poll()));
    }
    assert_eq!((probe.readies(), probe.calls(), probe.polls(), probe.drops()), (0, 0, 0, 0));
}

#[tokio::test]
async fn s15_inner_service_stays_ready_after_rejection() {
    let (grantor, leadership, _clock) = stage();
    let (mut service, mut requests) = gate(&leadership);
    requests.allow(1);
    assert_ready_ok!(service.poll_ready());
    assert_not_leader(&assert_ready_err!(task::spawn(service.call(write())).poll()));
    // The one request that the mock allows has not been used. A mock that is not ready panics when called.
    let _grant = lead(&grantor);
    let mut response = task::spawn(service.call(write()));
    assert_request_eq!(requests, WRITE).send_response("made");
    assert_eq!(assert_ready_ok!(response.poll()).into_body(), "made");
}

#[tokio::test]
async fn s15_buffered_client_survives_a_thousand_rejections() {
    let (grantor, leadership, _clock) = stage();
    let (service, mut requests) = mock::pair::<String, &'static str>();
    let service = WriteGateLayer::new(leadership.clone()).layer(described().layer(service));
    let mut service = Buffer::new(service, 4);
    requests.allow(2);
    for _ in 0..1000 {
        let error = service.ready().await.expect("the buffer lives").call(write()).await.unwrap_err();
        assert_not_leader(&error);
    }
    let response = tokio::spawn(service.ready().await.unwrap().call(read()));
    assert_request_eq!(requests, READ).send_response("seen");
    assert_eq!(response.await.unwrap().unwrap().into_body(), "seen");

    let _grant = lead(&grantor);
    let response = tokio::spawn(service.ready().await.unwrap().call(write()));
    assert_request_eq!(requests, WRITE).send_response("made");
    assert_eq!(response.await.unwrap().unwrap().into_body(), "made");
}
