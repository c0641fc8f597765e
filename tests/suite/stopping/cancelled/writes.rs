//! Futures of writes: a dropped write is counted out, and its outcome is unknown.

use crate::{
    stopping::cancelled::orphan::pass_ms,
    support::{FIRST, SKEW, SOON, candidate, gated, leading, releases, until, within, write},
};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Frame;
use kube_leader_gate::{
    Leadership, WriteGateLayer,
    leadership::{Grant, Grantor, Term},
    testing::{ApiServer, Fault, TokioClock},
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use test_support::cancellation::{dropped_at_each_poll, tasks};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};

/// A leadership with a term, on tokio's clock.
fn leading_alone() -> (Grantor, Grant, Leadership) {
    let grantor = Grantor::with_clock(Arc::new(TokioClock::new()));
    let deadline = grantor.now().saturating_add(Duration::from_secs(60));
    let grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
    let leadership = grantor.leadership();
    (grantor, grant, leadership)
}

/// Nothing is under way. A write without an answer is on record.
fn is_over(leadership: &Leadership, answered: bool) {
    assert_eq!(leadership.writes_under_way(), 0);
    assert_eq!(leadership.unanswered().is_none(), answered);
    assert!(leadership.admit().is_some(), "the gate is as it was");
}

#[test]
fn s4_guarded_write_dropped_at_each_poll_is_unanswered() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (_grantor, _grant, leadership) = leading_alone();
        let statement = async {
            for _ in 0..5 {
                pass_ms(1).await;
            }
            Ok::<_, Infallible>("done")
        };
        let outcome = cut.off(leadership.guard("a statement", statement)).await;
        assert!(outcome.is_none_or(|outcome| outcome.is_ok()));
        is_over(&leadership, cut.completed());
    });
    assert!(worlds > 10, "{worlds}");
}

/// The candidate's own guard, and what a stop makes of it.
#[test]
fn s4_guarded_write_dropped_at_each_poll_delays_the_release() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let (a, client) = leading(&server, "a").await;
        drop(client);
        let statement = async {
            pass_ms(1).await;
            Ok::<_, Infallible>(())
        };
        cut.off(a.candidate().guard("a statement", statement)).await;
        let end = Instant::now();
        a.stop().await;
        let after = releases(&server, "a")[0].received.at.saturating_duration_since(end);
        let wait = if cut.completed() { Duration::ZERO } else { SKEW };
        assert!(after + Duration::from_millis(5) >= wait && after < wait + SOON, "{after:?}");
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 3, "{worlds}");
}

/// The whole way of a kube client: buffer, gate, server. The request may land although its caller is gone.
#[test]
fn s4_kube_write_dropped_at_each_poll_delays_the_release() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let election = candidate(&server, "a");
        let client = gated(&server, &election, "a");
        let a = election.start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        let _slow =
            server.inject(Fault::delay_before(Duration::from_millis(5)).resource("tokenreviews").times(1));
        cut.off(write(&client)).await;
        let end = Instant::now();
        until(SOON, "no write is under way", || a.candidate().leadership().writes_under_way() == 0).await;
        let began = server.write_log().iter().any(|it| it.resource == "tokenreviews");
        a.stop().await;
        let after = releases(&server, "a")[0].received.at.saturating_duration_since(end);
        if began && !cut.completed() {
            assert!(after + Duration::from_millis(5) >= SKEW, "{after:?}");
        }
        drop(client);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 4, "{worlds}");
}

/// The next call of a client works.
#[test]
fn s15_client_is_usable_after_each_dropped_write() {
    dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let (a, client) = leading(&server, "a").await;
        let slow = server.inject(Fault::delay_before(Duration::from_millis(5)).resource("tokenreviews"));
        cut.off(write(&client)).await;
        drop(slow);
        within(SOON, "the next write", write(&client)).await.expect("it leads");
        drop(a);
    });
}

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

/// An answer after two pauses, with a body in three frames.
async fn answer(status: u16, text: &'static str) -> Result<Response<Body>, Infallible> {
    pass_ms(1).await;
    pass_ms(1).await;
    let frames = stream::unfold(text.as_bytes().chunks(text.len() / 3 + 1), async |mut chunks| {
        pass_ms(1).await;
        Some((Ok(Frame::data(Bytes::from_static(chunks.next()?))), chunks))
    });
    Ok(Response::builder().status(status).body(StreamBody::new(frames).boxed_unsync()).expect("a response"))
}

fn post() -> Request<Empty<Bytes>> {
    Request::post("/api/v1/namespaces/default/configmaps").body(Empty::new()).expect("a request")
}

/// Each way leaves a write without an answer: the drop, and a 504.
#[test]
fn s4_gated_write_dropped_at_each_poll_is_unanswered() {
    for (status, certain) in [(504, false), (201, true)] {
        let worlds = dropped_at_each_poll(async |cut| {
            let (_grantor, _grant, leadership) = leading_alone();
            let inner = service_fn(move |_: Request<Empty<Bytes>>| answer(status, "an answer"));
            let mut service = WriteGateLayer::new(leadership.clone()).layer(inner);
            cut.off(service.ready().await.expect("ready").call(post())).await;
            is_over(&leadership, cut.completed() && certain);
        });
        assert!(worlds > 3, "{worlds}");
    }
}
