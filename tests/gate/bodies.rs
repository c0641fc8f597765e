//! S4 and S2 for a request body that is still on its way when the answer begins.

use crate::support::{BoxError, PATH, STEP, TERM, lead, stage};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube_client::client;
use kube_leader_gate::{ErrLeadershipLost, Leadership, WriteGateLayer, leadership::Loss};
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tokio::sync::mpsc;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, ServiceExt, service_fn};

const PROXY: &str = "/api/v1/namespaces/a/services/b/proxy/upload";

/// The type of streamed bodies that the gate follows.
type Streamed = UnsyncBoxBody<Bytes, BoxError>;

fn boxed(body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static) -> Streamed {
    body.map_err(Into::into).boxed_unsync()
}

type Feed = mpsc::UnboundedSender<Frame<Bytes>>;

fn unknown() -> (Feed, impl Body<Data = Bytes, Error = Infallible> + Send + 'static) {
    let (feed, mut frames) = mpsc::unbounded_channel();
    let frames = stream::poll_fn(move |cx| frames.poll_recv(cx).map(|frame| frame.map(Ok)));
    (feed, StreamBody::new(frames))
}

fn streamed() -> (Feed, Streamed) {
    let (feed, body) = unknown();
    (feed, boxed(body))
}

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

/// Sends a write that is answered at once. Returns its body, as a connection has it then.
async fn answered_early<B: Send + 'static>(leadership: &Leadership, path: &str, body: B) -> B {
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let service = WriteGateLayer::new(leadership.clone()).layer(service_fn(move |request: Request<B>| {
        *keep.lock().unwrap() = Some(request.into_body());
        async { Ok::<_, Infallible>(Response::new(())) }
    }));
    service.oneshot(Request::post(path).body(body).unwrap()).await.unwrap();
    kept.lock().unwrap().take().expect("a body")
}

/// Sends a write that is answered once its body was handed on. Then looks at what is known of it.
async fn answered_late<B>(request: Request<B>, look: impl Fn(&Leadership))
where
    B: Body<Data = Bytes, Error: std::fmt::Debug> + Send + 'static,
{
    let (grantor, leadership, clock) = stage();
    let _grant = lead(&grantor);
    let service = WriteGateLayer::new(leadership.clone()).layer(service_fn(|request: Request<B>| async {
        drop(request.into_body().collect().await.unwrap());
        clock.advance(STEP);
        Ok::<_, Infallible>(Response::new(()))
    }));
    service.oneshot(request).await.unwrap();
    look(&leadership);
}

#[tokio::test]
async fn s4_write_counts_until_its_body_is_over() {
    for path in [PATH, PROXY] {
        let (grantor, leadership, clock) = stage();
        let _grant = lead(&grantor);
        let (feed, body) = streamed();
        let mut body = answered_early(&leadership, path, body).await;
        assert_eq!(leadership.writes_under_way(), 1);
        feed.send(data("one")).unwrap();
        let one = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(one, "one");
        drop(feed);
        assert!(body.frame().await.is_none());
        drop(body);
        assert_eq!(leadership.writes_under_way(), 1, "the connection still holds a piece");
        grantor.close();
        let mut drain = task::spawn(leadership.drain(TERM));
        assert_pending!(drain.poll());
        clock.advance(STEP);
        drop(one);
        assert!(drain.is_woken());
        assert_eq!(assert_ready!(drain.poll()), Ok(()));
        // The connection may have copied the piece, and nothing shows when the copy leaves.
        assert_eq!(leadership.unanswered(), Some(leadership.now()));
    }
}

/// The bytes are in memory, but a backend gets them one by one.
#[cfg(feature = "election")]
#[tokio::test]
async fn s4_whole_body_for_a_backend_counts_until_it_is_over() {
    let (grantor, leadership, clock) = stage();
    let _grant = lead(&grantor);
    let mut body = answered_early(&leadership, PROXY, client::Body::from(b"whole".to_vec())).await;
    assert_eq!(body.size_hint().exact(), Some(5));
    assert!(body.try_clone().is_some(), "a retry may send it again");
    let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(bytes, "whole");
    assert!(body.is_end_stream());
    drop(body);
    assert_eq!(leadership.writes_under_way(), 1);
    clock.advance(STEP);
    drop(bytes);
    assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, Some(leadership.now())));
}

/// A connection may copy all that it is given, and send the copy after the answer. So nothing shows when a body has left.
#[tokio::test]
async fn s4_answer_of_a_backend_proves_no_end_of_its_body() {
    let paths = ["/api/v1/proxy/nodes/a/upload", "/api/v1/namespaces/a/pods/", "/upload", PROXY];
    for (path, method) in paths.into_iter().zip(["POST", "PUT", "PATCH", "DELETE"]) {
        let request = || Request::builder().method(method).uri(path);
        let late = |leadership: &Leadership| {
            assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, Some(leadership.now())));
        };
        let (feed, streamed) = streamed();
        feed.send(data("whole")).unwrap();
        drop(feed);
        answered_late(request().body(streamed).unwrap(), late).await;
        answered_late(request().body(client::Body::from(b"whole".to_vec())).unwrap(), late).await;
        for asks in ["close", "upgrade"] {
            let unknown = request().header("connection", asks).body(Full::<Bytes>::from("of another type"));
            answered_late(unknown.unwrap(), late).await;
        }
    }
}

/// etcd did not confirm the write in time, a gateway has lost its connection, or the time was over.
#[tokio::test]
async fn s4_answer_that_leaves_the_outcome_open_is_none() {
    for status in (200..600).filter_map(|code| StatusCode::from_u16(code).ok()) {
        let (grantor, leadership, _clock) = stage();
        let _grant = lead(&grantor);
        let service = WriteGateLayer::new(leadership.clone()).layer(service_fn(async |_: Request<()>| {
            Ok::<_, Infallible>(Response::builder().status(status).body(()).unwrap())
        }));
        service.oneshot(Request::post(PATH).body(()).unwrap()).await.unwrap();
        let is_open = matches!(status.as_u16(), 408 | 500..);
        assert_eq!(leadership.unanswered().is_some(), is_open, "{status}");
    }
}

/// The API server reads a change to its end before it carries it out.
#[tokio::test]
async fn s4_answer_of_the_api_server_is_an_end() {
    let known = |leadership: &Leadership| {
        assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
    };
    let request = || Request::post(PATH);
    answered_late(request().body(client::Body::from(b"whole".to_vec())).unwrap(), known).await;
    answered_late(request().body(Full::<Bytes>::from("of another type")).unwrap(), known).await;
    // hyper asks for nothing after the last byte that the header promises.
    let (feed, body) = streamed();
    feed.send(data("one")).unwrap();
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let gate = WriteGateLayer::new(leadership.clone());
    let service = gate.layer(service_fn(async |request: Request<Streamed>| {
        assert!(request.into_body().frame().await.is_some());
        Ok::<_, Infallible>(Response::new(()))
    }));
    service.oneshot(Request::post(PATH).body(body).unwrap()).await.unwrap();
    known(&leadership);
}

#[tokio::test]
async fn s4_write_without_a_body_ends_with_its_answer() {
    let known = |leadership: &Leadership| {
        assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
    };
    let request = || Request::post(PROXY);
    answered_late(request().body(boxed(Full::<Bytes>::default())).unwrap(), known).await;
    #[cfg(feature = "election")] // the gate alone does not know kube's body
    answered_late(request().body(client::Body::empty()).unwrap(), known).await;
    // The gate cannot look into this type, but an upgrade has no body.
    let upgrade = Request::get(PROXY).header("connection", "upgrade");
    answered_late(upgrade.body(Full::<Bytes>::default()).unwrap(), known).await;
    let odd = request().header("connection", "upgrade").body(client::Body::from(b"whole".to_vec()));
    answered_late(odd.unwrap(), |leadership| assert!(leadership.unanswered().is_some())).await;
}

#[tokio::test]
async fn s2_loss_cuts_off_body_after_its_answer() {
    for loss in [Loss::Taken, Loss::Expired] {
        let (grantor, leadership, clock) = stage();
        let _grant = lead(&grantor);
        let (feed, body) = streamed();
        let mut body = answered_early(&leadership, PROXY, body).await;
        {
            let mut frame = task::spawn(body.frame());
            assert_pending!(frame.poll());
            if loss == Loss::Expired {
                clock.advance(TERM);
            } else {
                grantor.revoke(loss);
                assert!(frame.is_woken());
            }
            feed.send(data("late")).unwrap();
            let error = assert_ready!(frame.poll()).unwrap().unwrap_err();
            assert_eq!(ErrLeadershipLost::find(&*error).unwrap().loss(), loss);
        }
        let began = leadership.now();
        drop(body);
        assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, Some(began)));
    }
}

/// hyper asks for the next frame when it has room, and sends what it has got even after the loss.
#[tokio::test]
async fn s2_connection_gets_little_of_a_body_at_a_time() {
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let (feed, body) = streamed();
    let mut body = answered_early(&leadership, PROXY, body).await;
    let big: Vec<u8> = (0..=u8::MAX).cycle().take(200_000).collect();
    let trailers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("x"))]);
    for frame in [Frame::data(Bytes::new()), Frame::data(big.clone().into()), Frame::trailers(trailers)] {
        feed.send(frame).unwrap();
    }
    drop(feed);
    let (mut got, mut ends) = (Vec::new(), false);
    while let Some(frame) = body.frame().await.transpose().unwrap() {
        ends = frame.is_trailers();
        let data = frame.into_data().unwrap_or_default();
        assert!(data.len() <= 65_536, "{} bytes at once", data.len());
        got.extend_from_slice(&data);
        assert!(body.size_hint().lower() <= (big.len() - got.len()) as u64);
    }
    assert!(got == big && ends);

    let (feed, body) = streamed();
    let mut body = answered_early(&leadership, PROXY, body).await;
    feed.send(Frame::data(big.into())).unwrap();
    assert!(body.frame().await.unwrap().is_ok());
    assert_eq!((body.size_hint().lower(), body.is_end_stream()), (200_000 - 65_536, false));
    grantor.revoke(Loss::Taken);
    assert!(body.frame().await.unwrap().is_err(), "the rest stays");
}

/// What goes on sending the body may send it to its end, and the API server then carries the write out.
#[tokio::test]
async fn s4_body_that_outlives_a_dropped_write_has_no_answer() {
    let (grantor, leadership, clock) = stage();
    let _grant = lead(&grantor);
    let (feed, body) = streamed();
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let gate = WriteGateLayer::new(leadership.clone());
    let service = gate.layer(service_fn(move |request: Request<Streamed>| {
        *keep.lock().unwrap() = Some(request.into_body());
        std::future::pending::<Result<Response<()>, Infallible>>()
    }));
    let mut response = task::spawn(service.oneshot(Request::post(PATH).body(body).unwrap()));
    assert_pending!(response.poll());
    drop(response);
    assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (1, None));
    clock.advance(STEP);
    drop(feed);
    let mut body = kept.lock().unwrap().take().expect("a body");
    assert!(body.frame().await.is_none());
    drop(body);
    assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, Some(leadership.now())));
}

/// Each gate follows the body.
#[tokio::test]
async fn s4_body_behind_two_gates_is_over_for_both() {
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let gate = WriteGateLayer::new(leadership.clone());
    let service = gate.layer(gate.layer(service_fn(async |request: Request<Streamed>| {
        assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), "one");
        Ok::<_, Infallible>(Response::new(()))
    })));
    let (feed, body) = streamed();
    feed.send(data("one")).unwrap();
    drop(feed);
    service.oneshot(Request::post(PATH).body(body).unwrap()).await.unwrap();
    assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
}
