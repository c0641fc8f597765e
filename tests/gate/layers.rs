//! S2 with other layers: a layer below the gate cannot send after the loss, and a layer above gets no write through.

use crate::support::{BoxError, TERM, WRITE, assert_lost, assert_not_leader, described, lead, stage, write};
use kube_leader_gate::{WriteGateLayer, leadership::Loss};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::sync::Semaphore;
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceBuilder, buffer::Buffer, retry::Policy, service_fn};
use tower_test::{assert_request_eq, mock};

/// Retries any error this many times, without a pause, whatever the method.
#[derive(Clone)]
struct Stubborn(usize);

impl<Q: Clone, R> Policy<Q, R, BoxError> for Stubborn {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Q, outcome: &mut Result<R, BoxError>) -> Option<Ready<()>> {
        if outcome.is_ok() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Q) -> Option<Q> {
        Some(request.clone())
    }
}

#[tokio::test]
async fn s2_retry_below_gate_sends_nothing_after_loss() {
    let (grantor, leadership, clock) = stage();
    let (mut service, mut requests) = mock::spawn_layer::<String, &'static str, _>(
        ServiceBuilder::new()
            .layer(WriteGateLayer::new(leadership.clone()))
            .layer(described())
            .retry(Stubborn(1000)),
    );
    requests.allow(100);
    let _grant = lead(&grantor);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(write()));
    assert_pending!(response.poll());
    // While this replica leads, the layer retries.
    assert_request_eq!(requests, WRITE).send_error("connection reset");
    assert_pending!(response.poll());
    assert_request_eq!(requests, WRITE).send_error("connection reset");

    clock.advance(TERM);
    assert!(response.is_woken());
    assert_lost(&assert_ready_err!(response.poll()), Loss::Expired);
    assert_pending!(task::spawn(requests.next_request()).poll());
}

#[tokio::test]
async fn s2_retry_above_gate_sends_nothing_after_loss() {
    let (grantor, leadership, clock) = stage();
    let (mut service, mut requests) = mock::spawn_layer::<String, &'static str, _>(
        ServiceBuilder::new()
            .retry(Stubborn(1000))
            .layer(WriteGateLayer::new(leadership.clone()))
            .layer(described()),
    );
    requests.allow(2000);
    let _grant = lead(&grantor);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(write()));
    assert_pending!(response.poll());
    assert_request_eq!(requests, WRITE).send_error("connection reset");
    assert_pending!(response.poll());
    let second = assert_request_eq!(requests, WRITE);

    clock.advance(TERM);
    second.send_error("connection reset");
    // Cut off, then rejected until the policy gives up.
    assert_not_leader(&assert_ready_err!(response.poll()));
    assert_pending!(task::spawn(requests.next_request()).poll());
}

/// A connection or a token takes time. The request goes out when it is ready.
#[test]
fn s2_slow_connect_below_gate_sends_nothing_after_loss() {
    let (grantor, leadership, _clock) = stage();
    let (connected, sent) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (connecting, sending) = (connected.clone(), sent.clone());
    let mut service = WriteGateLayer::new(leadership.clone()).layer(service_fn(move |_| {
        let (connecting, sending) = (connecting.clone(), sending.clone());
        async move {
            let _connection = connecting.acquire().await;
            sending.fetch_add(1, SeqCst);
            Ok::<_, Infallible>(http::Response::new("made"))
        }
    }));
    let grant = lead(&grantor);
    let (mut first, mut second) = (task::spawn(service.call(write())), task::spawn(service.call(write())));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    connected.add_permits(1);
    assert_eq!(assert_ready_ok!(first.poll()).into_body(), "made");

    grant.end(Loss::Taken);
    connected.add_permits(1);
    assert_lost(&assert_ready_err!(second.poll()), Loss::Taken);
    assert_eq!(sent.load(SeqCst), 1);
}

#[tokio::test]
async fn s2_buffer_below_gate_discards_cut_off_write() {
    let (grantor, leadership, _clock) = stage();
    let (service, mut requests) = mock::pair::<String, &'static str>();
    let (buffer, worker) = Buffer::pair(described().layer(service), 16);
    let mut worker = task::spawn(worker);
    let mut service = mock::Spawn::new(WriteGateLayer::new(leadership.clone()).layer(buffer));
    let grant = lead(&grantor);
    requests.allow(0);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(write()));
    assert_pending!(response.poll());
    assert_pending!(worker.poll());

    // The write waits in the buffer, and the service below becomes ready after the loss.
    grant.end(Loss::Taken);
    assert!(response.is_woken());
    assert_lost(&assert_ready_err!(response.poll()), Loss::Taken);
    requests.allow(10);
    assert_pending!(worker.poll());
    assert_pending!(task::spawn(requests.next_request()).poll());

    // The same buffer works in the next term.
    let _grant = lead(&grantor);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(write()));
    assert_pending!(response.poll());
    assert_pending!(worker.poll());
    assert_request_eq!(requests, WRITE).send_response("made");
    assert_eq!(assert_ready_ok!(response.poll()).into_body(), "made");
}

#[tokio::test]
async fn s2_gate_judges_buffered_write_when_it_leaves_buffer() {
    let (grantor, leadership, clock) = stage();
    let (service, mut requests) = mock::pair::<String, &'static str>();
    let gate = WriteGateLayer::new(leadership.clone()).layer(described().layer(service));
    let (buffer, worker) = Buffer::pair(gate, 16);
    let mut worker = task::spawn(worker);
    let mut service = mock::Spawn::new(buffer);
    let _grant = lead(&grantor);
    requests.allow(0);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(write()));
    assert_pending!(worker.poll());
    assert_pending!(response.poll());

    clock.advance(TERM);
    requests.allow(10);
    assert_pending!(worker.poll());
    assert_not_leader(&assert_ready_err!(response.poll()));
    assert_pending!(task::spawn(requests.next_request()).poll());
}

/// As with the layers of tower-http. What is sent to the service behind the gate does not go through the gate.
#[test]
fn gate_hands_out_the_service_behind_it() {
    let (_, leadership, _) = stage();
    let mut gate = WriteGateLayer::new(leadership).layer("behind");
    assert_eq!(*gate.get_ref(), "behind");
    *gate.get_mut() = "another";
    assert_eq!(gate.into_inner(), "another");
}
