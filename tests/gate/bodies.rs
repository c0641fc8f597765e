//! S4 and S2 for a request body that is still on its way when the answer begins.

use crate::support::{BoxError, PATH, TERM, lead, stage};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Request, Response};
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

#[tokio::test]
async fn s4_write_counts_until_its_body_has_left() {
    for path in [PATH, PROXY] {
        let (grantor, leadership, _clock) = stage();
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
        drop(one);
        assert!(drain.is_woken());
        assert_eq!(assert_ready!(drain.poll()), Ok(()));
        assert_eq!(leadership.unanswered(), None);
    }
}

/// The ways in which a connection learns that a body is over.
#[tokio::test]
async fn s4_each_end_of_a_body_is_an_end() {
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let (feed, body) = streamed();
    feed.send(Frame::trailers(HeaderMap::new())).unwrap();
    let ends = [body, boxed(Full::from("known length"))];
    for body in ends {
        let mut body = answered_early(&leadership, PATH, body).await;
        assert!(body.frame().await.is_some());
        drop(body);
        assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
    }
    // The body is over before the answer.
    drop(answered_early(&leadership, PATH, boxed(Full::<Bytes>::default())).await);
    assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
}

#[tokio::test]
async fn s4_body_that_is_dropped_midway_has_no_answer() {
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let (feed, body) = streamed();
    feed.send(data("one")).unwrap();
    let mut body = answered_early(&leadership, PATH, body).await;
    assert!(body.frame().await.is_some());
    assert_eq!(leadership.unanswered(), None);
    drop(body);
    assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, Some(leadership.now())));
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

/// The bytes are in memory, but a backend gets them one by one.
#[tokio::test]
async fn s4_whole_body_for_a_backend_counts_until_it_has_left() {
    for path in [PROXY, "/api/v1/proxy/nodes/a/upload", "/upload"] {
        let (grantor, leadership, _clock) = stage();
        let _grant = lead(&grantor);
        let mut body = answered_early(&leadership, path, client::Body::from(b"whole".to_vec())).await;
        assert_eq!(body.size_hint().exact(), Some(5));
        assert!(body.try_clone().is_some(), "a retry may send it again");
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(bytes, "whole");
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (1, None));
        drop(bytes);
        assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
    }
}

/// The API server reads a change to its end before it carries it out.
#[tokio::test]
async fn s4_whole_body_for_the_api_server_ends_with_the_answer() {
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let _kube = answered_early(&leadership, PATH, client::Body::from(b"whole".to_vec())).await;
    let _other = answered_early(&leadership, PATH, "whole").await;
    let _empty = answered_early(&leadership, PROXY, client::Body::empty()).await;
    assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
}

#[tokio::test]
async fn s4_dropped_response_leaves_its_body_counted() {
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let (_feed, body) = streamed();
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let gate = WriteGateLayer::new(leadership.clone());
    let service = gate.layer(service_fn(move |request: Request<Streamed>| {
        *keep.lock().unwrap() = Some(request.into_body());
        std::future::pending::<Result<(), Infallible>>()
    }));
    let mut response = task::spawn(service.oneshot(Request::post(PATH).body(body).unwrap()));
    assert_pending!(response.poll());
    drop(response);
    assert!(leadership.writes_under_way() == 1 && leadership.unanswered().is_some());
    drop(kept.lock().unwrap().take());
    assert_eq!(leadership.writes_under_way(), 0);
}
