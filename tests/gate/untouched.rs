//! The gate does not change reads, exempted writes, bodies, streams or errors.

use crate::support::{BoxError, PATH, Probe, TERM, assert_lost, assert_not_leader, lead, stage};
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Request, Response, StatusCode};
use kube_leader_gate::{
    Leadership, Policy, WriteGateLayer,
    leadership::Loss,
    policy::{Preset, Rule},
    request::Verb,
};
use std::{convert::Infallible, pin::Pin};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt, service_fn};

/// A body that can neither be cloned nor compared nor made from another value.
struct Opaque(Box<u8>);

impl Opaque {
    fn address(&self) -> *const u8 {
        &raw const *self.0
    }
}

fn echo(
    leadership: &Leadership,
) -> impl Service<Request<Opaque>, Response = Response<Opaque>, Error = BoxError> {
    WriteGateLayer::new(leadership.clone()).layer(service_fn(|request: Request<Opaque>| async move {
        let (parts, body) = request.into_parts();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        *response.headers_mut() = parts.headers;
        *response.extensions_mut() = parts.extensions;
        response.headers_mut().insert("asked", HeaderValue::from_str(&parts.uri.to_string()).unwrap());
        Ok::<_, Infallible>(response)
    }))
}

#[tokio::test]
async fn s2_reads_and_admitted_writes_keep_their_bodies() {
    let (grantor, leadership, _clock) = stage();
    for leading in [false, true] {
        let _grant = leading.then(|| lead(&grantor));
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            let body = Opaque(Box::new(7));
            let address = body.address();
            let uri = format!("{PATH}?watch=true&resourceVersion=5");
            let request = Request::builder().method(method).uri(&uri).header("x-trace", "1").extension(42_u8);
            let outcome = echo(&leadership).oneshot(request.body(body).unwrap()).await;
            if !leading && ["POST", "DELETE"].contains(&method) {
                assert_not_leader(&outcome.map(drop).unwrap_err());
                continue;
            }
            let response = outcome.expect("passes");
            assert_eq!(response.body().address(), address, "the very same body");
            assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
            assert_eq!(response.headers()["x-trace"], "1");
            assert_eq!(response.headers()["asked"], *uri);
            assert_eq!(response.extensions().get::<u8>(), Some(&42));
        }
    }
}

type Lines = Pin<Box<dyn stream::Stream<Item = u32> + Send>>;

/// A watch, and the answer to an admitted write, continue to stream when the term in which they began is over.
#[tokio::test]
async fn s2_started_streams_continue_after_loss() {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(service_fn(|_: Request<()>| async {
        let lines: Lines = Box::pin(stream::iter([1, 2, 3]));
        Ok::<_, Infallible>(Response::new(lines))
    }));
    for request in [Request::get(format!("{PATH}?watch=1")), Request::post(PATH)] {
        let grant = lead(&grantor);
        let mut lines = service.call(request.body(()).unwrap()).await.unwrap().into_body();
        assert_eq!(lines.next().await, Some(1));
        grant.end(Loss::Taken);
        assert_eq!(lines.collect::<Vec<_>>().await, [2, 3]);
        assert_eq!(leadership.writes_under_way(), 0);
    }
}

#[test]
fn s2_read_is_neither_counted_nor_cut_off() {
    let (grantor, leadership, clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let grant = lead(&grantor);
    let mut response = task::spawn(service.call(Request::get(PATH).body(()).unwrap()));
    assert_pending!(response.poll());
    assert_eq!(leadership.writes_under_way(), 0);
    clock.advance(TERM);
    grant.end(Loss::Taken);
    assert!(!response.is_woken());
    assert_pending!(response.poll());
    probe.answer();
    assert_eq!(assert_ready_ok!(response.poll()).into_body(), "done");
}

#[test]
fn s2_exempted_write_passes_follower_and_survives_loss() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let policy = Policy::strict()
        .allow(Preset::Events)
        .allow_status("example.com", "probes")
        .allow(Rule::new("", "configmaps").verbs([Verb::Patch]).name("mine"))
        .allow_if(|asked| asked.path() == "/api/v1/namespaces/default/pods/p/eviction");
    let mut service = WriteGateLayer::new(leadership.clone()).with_policy(policy).layer(probe.clone());
    let request = |method: &str, path: &str| {
        Request::builder().method(method).uri(format!("/{path}")).body(()).unwrap()
    };
    let exempted = [
        ("POST", "api/v1/namespaces/default/events"),
        ("PATCH", "apis/example.com/v1/namespaces/a/probes/p/status"),
        ("PATCH", "api/v1/namespaces/default/configmaps/mine"),
        ("POST", "api/v1/namespaces/default/pods/p/eviction"),
    ];
    let mut under_way = Vec::new();
    for leading in [false, true] {
        let _grant = leading.then(|| lead(&grantor));
        for (method, path) in exempted {
            let mut response = task::spawn(service.call(request(method, path)));
            assert_pending!(response.poll());
            under_way.push(response);
        }
        assert_eq!(leadership.writes_under_way(), 0, "exempted, so not counted");
    }
    assert_eq!(probe.calls(), 8);
    for (method, path) in [
        ("PATCH", "apis/example.com/v1/namespaces/a/probes/p"),
        ("PATCH", "api/v1/namespaces/default/configmaps/yours"),
        ("DELETE", "api/v1/namespaces/default/configmaps/mine"),
    ] {
        assert_not_leader(&assert_ready_err!(task::spawn(service.call(request(method, path))).poll()));
    }
    assert_eq!((probe.calls(), probe.drops()), (8, 0));
    probe.answer();
    for mut response in under_way {
        assert_ready_ok!(response.poll());
    }
}

#[tokio::test]
async fn s2_errors_of_inner_service_pass_unchanged() {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(service_fn(|_: Request<()>| async {
        Err::<http::Response<()>, _>(std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset"))
    }));
    let _grant = lead(&grantor);
    for request in [Request::get(PATH), Request::post(PATH)] {
        let error = service.call(request.body(()).unwrap()).await.unwrap_err();
        let kind = error.downcast_ref::<std::io::Error>().expect("the same type").kind();
        assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
        assert_eq!(leadership.writes_under_way(), 0);
    }
}

/// A clone of the gate uses the same leadership.
#[test]
fn s1_clones_of_the_gate_share_one_leadership() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let layer = WriteGateLayer::new(leadership.clone());
    let services =
        [layer.layer(probe.clone()), layer.clone().layer(probe.clone()), layer.layer(probe).clone()];
    let grant = lead(&grantor);
    let mut responses: Vec<_> = services
        .iter()
        .map(|service| task::spawn(service.clone().call(Request::post(PATH).body(()).unwrap())))
        .collect();
    for response in &mut responses {
        assert_pending!(response.poll());
    }
    assert_eq!(leadership.writes_under_way(), 3);
    grant.end(Loss::Deleted);
    for response in &mut responses {
        assert!(response.is_woken());
        assert_lost(&assert_ready_err!(response.poll()), Loss::Deleted);
    }
}
