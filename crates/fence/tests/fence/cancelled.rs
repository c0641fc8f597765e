//! Futures that are dropped at each of their polls. The in-process API server keeps the two objects of a fence, and judges
//! nothing by them.

use crate::{
    support::{SOON, free, pass, until},
    wall::{fence, refusal},
};
use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use kube_leader_gate::{
    WriteGateLayer,
    kube_client::{Client, client::Body},
    leadership::{Grantor, Term},
    testing::{ApiServer, Fault, TokioClock},
};
use kube_leader_gate_fence::{Applied, ErrFenced, Impersonator};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc, time::Duration};
use test_support::cancellation::{dropped_at_each_poll, tasks};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A client of an API server that knows the two kinds, and whose answers take a while.
fn client(server: &ApiServer) -> Client {
    std::mem::forget(server.inject(Fault::delay_before(Duration::from_millis(1))));
    let inner = Client::new(server.service().user("admin"), "default");
    let service = service_fn(move |request: Request<Body>| -> BoxFuture<'static, Result<_, BoxError>> {
        let inner = inner.clone();
        Box::pin(async move {
            let offers = json!({ "kind": "APIResourceList", "resources": [
                { "name": "validatingadmissionpolicies" }, { "name": "validatingadmissionpolicybindings" },
            ]});
            Ok(match request.uri().path() {
                GROUP => Response::new(Body::from(offers.to_string().into_bytes())),
                _ => inner.send(request).await?,
            })
        })
    });
    Client::new(service, "default")
}

/// Whether the policy and the binding of the fence exist.
fn stands(server: &ApiServer) -> [bool; 2] {
    ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
        .map(|resource| server.object(&format!("{GROUP}/{resource}/{}", fence().name())).is_some())
}

/// The writes that changed an object.
fn changes(server: &ApiServer) -> usize {
    server.write_log().iter().filter(|it| it.took_effect() && !it.resource.ends_with("reviews")).count()
}

/// Not cancel-safe: the policy may stand alone, and is not in force. The next call mends that.
#[test]
fn apply_dropped_at_each_poll_is_mended_by_the_next() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let client = client(&server);
        let applied = cut.off(fence().apply(&client)).await;
        assert!(applied.is_none_or(|applied| matches!(applied, Ok(Applied::Created))));
        let [policy, binding] = stands(&server);
        assert!(policy || !binding, "no binding without its policy");
        fence().apply(&client).await.expect("it stands");
        assert_eq!(stands(&server), [true, true]);
        assert_eq!(fence().apply(&client).await.expect("it stands"), Applied::Unchanged);
        drop(client);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 20, "{worlds}");
}

/// Not cancel-safe: the policy may stand alone, and is not in force. The next call removes it.
#[test]
fn remove_dropped_at_each_poll_is_mended_by_the_next() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let client = client(&server);
        fence().apply(&client).await.expect("it stands");
        let removed = cut.off(fence().remove(&client)).await;
        assert!(removed.is_none_or(|removed| matches!(removed, Ok(true))));
        let [policy, binding] = stands(&server);
        assert!(policy || !binding, "no binding without its policy");
        fence().remove(&client).await.expect("it is gone");
        assert_eq!(stands(&server), [false, false]);
        drop(client);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 8, "{worlds}");
}

#[test]
fn questions_about_a_fence_dropped_at_each_poll_change_nothing() {
    for question in ["check", "identify", "check_as"] {
        let worlds = dropped_at_each_poll(async |cut| {
            let server = ApiServer::new();
            free(&server);
            let client = client(&server);
            fence().apply(&client).await.expect("it stands");
            let before = changes(&server);
            let ask = async || -> Value {
                match question {
                    "check" => fence().check(&client).await.expect("findings").len().into(),
                    "identify" => {
                        matches!(fence().identify(&client).await, Ok(Impersonator::Other(_))).into()
                    }
                    _ => fence().check_as(&client).await.expect("findings").len().into(),
                }
            };
            let answer = cut.off(ask()).await;
            let again = ask().await;
            assert!(answer.is_none_or(|answer| answer == again), "{question}");
            assert_eq!(changes(&server), before, "{question}");
            drop(client);
            until(SOON, "no task is left", || tasks() == 0).await;
        });
        assert!(worlds > 3, "{question}: {worlds}");
    }
}

const TICK: Duration = Duration::from_millis(1);

/// The answer is read in steps, behind the gate. The write has ended with the head of the answer.
#[test]
fn s4_refusal_dropped_at_each_poll_ends_its_write() {
    let worlds = dropped_at_each_poll(async |cut| {
        let grantor = Grantor::with_clock(Arc::new(TokioClock::new()));
        let deadline = grantor.now().saturating_add(Duration::from_secs(60));
        let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
        let leadership = grantor.leadership();
        let inner = service_fn(|_: Request<Empty<Bytes>>| async {
            pass(TICK * 2).await;
            let text =
                refusal("\"b\" holds the lease").into_body().collect().await.expect("a text").to_bytes();
            let frames = stream::unfold(text, async |mut text| {
                pass(TICK).await;
                let rest = text.split_off(text.len().min(100));
                (!text.is_empty()).then_some((Ok::<_, Infallible>(Frame::data(text)), rest))
            });
            let body = StreamBody::new(frames).boxed_unsync();
            Ok::<_, Infallible>(Response::builder().status(403).body(body).expect("a response"))
        });
        let post =
            || Request::post("/api/v1/namespaces/default/configmaps").body(Empty::new()).expect("a request");
        let mut service = fence().refusals().layer(WriteGateLayer::new(leadership.clone()).layer(inner));
        let begun = Instant::now();
        let outcome = cut.off(service.ready().await.expect("ready").call(post())).await;
        let answered = begun.elapsed() >= TICK * 4;
        if let Some(outcome) = outcome {
            assert!(ErrFenced::find(&*outcome.expect_err("a refusal")).is_some());
        }
        assert_eq!(leadership.writes_under_way(), 0);
        if answered {
            assert_eq!(leadership.unanswered(), None);
        }
        let next = service.ready().await.expect("ready").call(post()).await;
        assert!(ErrFenced::find(&*next.expect_err("a refusal")).is_some());
    });
    assert!(worlds > 8, "{worlds}");
}
