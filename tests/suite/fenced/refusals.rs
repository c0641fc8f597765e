//! What becomes of a write that the fence refuses.

use super::wall::{Mood, Wall, refusal};
use crate::{
    metrics::scrape::{Exporter, PUBLISHED},
    support::{FIRST, SOON, builder, is_not_leader, pass, until, within, write},
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::runtime::controller::Action;
use kube_leader_gate::{
    ErrNotLeader,
    election::LeaseEnd,
    metrics::{WRITES_FENCED_TOTAL, WRITES_TOTAL},
    refusal::RefusalLayer,
    runtime::gated,
};
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tower::{Layer, ServiceExt, service_fn};

const FENCE: &str = "operator.default.leader-gate";

#[tokio::test(start_paused = true)]
async fn a_fenced_write_is_reported_and_counted() {
    let exporter = Exporter::install();
    let wall = Wall::new(Mood::Follows);
    let (election, client) = wall.build("a", builder("a").metrics());
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    write(&client).await.unwrap();
    wall.refuse_next();
    let outcome = write(&client).await;
    assert!(is_not_leader(&outcome), "{outcome:?}");
    let error = outcome.unwrap_err();
    let refused = ErrNotLeader::find(&error).unwrap();
    assert!(refused.refusal().unwrap().contains("a holds the lease") && refused.holder().is_none());
    let text = refused.to_string();
    assert!(text.contains("; the API server refused it, and nothing was changed: things"), "{text}");
    assert!(a.candidate().can_write(), "the gate has not heard");
    pass(PUBLISHED).await;
    let scrape = exporter.scrape();
    let counted = |name, labels| format!("{}", scrape.value(name, labels));
    assert_eq!(counted(WRITES_FENCED_TOTAL, &[("verb", "create")]), "1");
    assert_eq!(counted(WRITES_TOTAL, &[("decision", "admitted")]), "2");
}

/// After the refusal, the stop takes as long as after an answered write.
#[tokio::test(start_paused = true)]
async fn s4_a_stop_after_a_refusal_does_not_wait() {
    let wall = Wall::new(Mood::Follows);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    wall.refuse_next();
    assert!(is_not_leader(&write(&client).await));
    assert_eq!(within(SOON, "it stops", a.stop()).await, LeaseEnd::Released);
}

/// If this process leads all the same, no other replica would do it.
#[tokio::test(start_paused = true)]
async fn a_gated_reconciler_comes_back_after_a_refusal() {
    let wall = Wall::new(Mood::Follows);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let mut reconcile = gated(|_: Arc<()>, client: Arc<kube_client::Client>| async move {
        write(&client).await.map(|()| Action::await_change())
    });
    let client = Arc::new(client);
    wall.refuse_next();
    let action = reconcile(Arc::new(()), client.clone()).await.unwrap();
    assert_eq!(action, Action::requeue(Duration::from_secs(1)));
    assert_eq!(reconcile(Arc::new(()), client).await.unwrap(), Action::await_change());
    until(SOON, "it still leads", || a.candidate().is_leader()).await;
}

type Answer = Response<StreamBody<stream::Iter<std::vec::IntoIter<io::Result<Frame<Bytes>>>>>>;

fn answer(code: StatusCode, frames: Vec<io::Result<Frame<Bytes>>>) -> Answer {
    Response::builder().status(code).body(StreamBody::new(stream::iter(frames))).unwrap()
}

async fn through(
    layer: &RefusalLayer,
    request: Request<()>,
    answer: Answer,
) -> Response<impl http_body::Body<Data = Bytes, Error = io::Error>> {
    let mut answer = Some(answer);
    let service = service_fn(move |_: Request<()>| {
        let answer = answer.take().expect("one request");
        async move { Ok::<_, Infallible>(answer) }
    });
    layer.layer(service).oneshot(request).await.expect("an answer")
}

/// Also one that is too long, in pieces, with trailers, or broken off.
#[tokio::test]
async fn any_other_403_comes_whole() {
    let data = |text: &str| Ok(Frame::data(Bytes::copy_from_slice(text.as_bytes())));
    let marked = refusal("x").into_body().collect().await.unwrap().to_bytes();
    let marked = String::from_utf8(marked.to_vec()).unwrap();
    let other = marked.replace(FENCE, "another");
    let long = format!("{{\"filler\":\"{}\",{}", "x".repeat(17 * 1024), &marked[1..]);
    let post = || Request::post("/api/v1/namespaces/a/pods").body(()).unwrap();
    let layer = RefusalLayer::new(FENCE);
    for text in ["", "no JSON", &other, &long, "{\"message\":7}"] {
        let (one, two) = text.split_at(text.len() / 2);
        let answer = answer(StatusCode::FORBIDDEN, vec![data(one), data(two), data("")]);
        let body = through(&layer, post(), answer).await.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), text.as_bytes());
    }
    let trailers = Frame::trailers([(http::header::TRAILER, "x".parse().unwrap())].into_iter().collect());
    let body = through(&layer, post(), answer(StatusCode::FORBIDDEN, vec![data("a"), Ok(trailers)])).await;
    assert!(body.into_body().collect().await.unwrap().trailers().is_some());
    let mut broken = through(
        &layer,
        post(),
        answer(StatusCode::FORBIDDEN, vec![data("a"), Err(io::Error::other("broken")), data("b")]),
    )
    .await
    .into_body();
    let mut broken = std::pin::pin!(&mut broken);
    assert_eq!(broken.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
    assert_eq!(broken.frame().await.unwrap().unwrap_err().to_string(), "broken");

    // The same text in another answer, and in the answer to a read.
    for (request, code) in [
        (post(), StatusCode::OK),
        (post(), StatusCode::CONFLICT),
        (Request::get("/api/v1/namespaces/a/pods").body(()).unwrap(), StatusCode::FORBIDDEN),
    ] {
        let body = through(&layer, request, answer(code, vec![data(&marked)])).await.into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes(), marked.as_bytes());
    }
}

/// What the caller gets of an answer with these bytes.
async fn recognised(path: &str, text: &[u8]) -> Option<String> {
    let body = Full::new(Bytes::copy_from_slice(text));
    let service = service_fn(move |_: Request<()>| {
        let answer = Response::builder().status(403).body(body.clone()).unwrap();
        async { Ok::<_, Infallible>(answer) }
    });
    let outcome =
        RefusalLayer::new(FENCE).layer(service).oneshot(Request::post(path).body(()).unwrap()).await;
    let error = outcome.err()?;
    Some(ErrNotLeader::find(&*error).expect("the gate's error").refusal().unwrap().to_owned())
}

/// `Accept` asks for protobuf, CBOR or YAML. The words stand in the answer as they are, or broken into lines.
#[tokio::test]
async fn a_refusal_is_recognised_in_each_encoding() {
    const PODS: &str = "/api/v1/namespaces/a/pods";
    let json = refusal("x").into_body().collect().await.unwrap().to_bytes();
    let status: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let message = status["message"].as_str().unwrap();
    assert_eq!(recognised(PODS, &json).await.as_deref(), Some(message));
    let length = u8::try_from(message.len() - 128).unwrap();
    let protobuf = [
        b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\xff\x01\x12\x07Failure\x1a".as_slice(),
        &[length | 128, 1],
    ];
    let protobuf =
        [protobuf.concat().as_slice(), message.as_bytes(), b"\x22\x09Forbidden\x30\x93\x03"].concat();
    let cbor =
        [b"\xd9\xd9\xf7\xa2gmessagey".as_slice(), &[1, length], message.as_bytes(), b"freasoniForbidden"]
            .concat();
    let lines = message.replace('\'', "''").replace(' ', "\n  ");
    let yaml = format!("code: 403\nmessage: '{lines}'\nreason: Forbidden\n");
    let quoted = format!("message: \"{}\"\n", message.replace('"', "\\\"").replace(' ', "\\\n  \\ "));
    for answer in [&protobuf, &cbor, yaml.as_bytes(), quoted.as_bytes()] {
        let shown = String::from_utf8_lossy(answer);
        let found = recognised(PODS, answer).await.expect(&shown);
        assert!(found.contains(FENCE) && found.ends_with("client is not leader"), "{found}");
        let other = shown.replace(FENCE, "operator.default.other-gate");
        assert_eq!(recognised(PODS, other.as_bytes()).await, None, "{other}");
    }
}

/// A backend may say anything, and may have carried the request out.
#[tokio::test]
async fn a_backends_403_comes_as_it_is() {
    let text = refusal("x").into_body().collect().await.unwrap().to_bytes();
    for path in [
        "/api/v1/namespaces/a/services/b/proxy/path",
        "/api/v1/namespaces/a/pods/b/proxy",
        "/api/v1/nodes/b/proxy/run",
        "/api/v1/proxy/namespaces/a/services/b/path",
        "/apis/own.example/v1/namespaces/a/things/b/proxy",
        "/anything",
        "/api/v1/namespaces/a//pods",
    ] {
        assert_eq!(recognised(path, &text).await, None, "{path}");
    }
    for path in ["/api/v1/namespaces/a/pods/b/exec", "/api/v1/namespaces/a/pods/b/eviction"] {
        assert!(recognised(path, &text).await.is_some(), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_403_without_an_end_comes_in_time() {
    let marked = refusal("x").into_body().collect().await.unwrap().to_bytes();
    let frames = stream::iter([Ok::<_, Infallible>(Frame::data(marked.clone()))]).chain(stream::pending());
    let mut body = Some(StreamBody::new(frames));
    let service = service_fn(move |_: Request<()>| {
        let answer = Response::builder().status(403).body(body.take().expect("one request")).unwrap();
        async { Ok::<_, Infallible>(answer) }
    });
    let post = Request::post("/api/v1/namespaces/a/pods").body(()).unwrap();
    let answer = RefusalLayer::new(FENCE).layer(service).oneshot(post);
    let mut body = within(Duration::from_secs(6), "the head", answer).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), marked);
}

/// The body's own length is what the caller sees.
#[tokio::test]
async fn an_answer_keeps_its_length() {
    use http_body::Body;
    let layer = RefusalLayer::new(FENCE);
    for code in [StatusCode::OK, StatusCode::FORBIDDEN] {
        let service = service_fn(move |_: Request<()>| async move {
            let body = Full::new(Bytes::from_static(b"12345"));
            Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
        });
        let request = Request::delete("/api/v1/namespaces/a/pods/b").body(()).unwrap();
        let body = layer.layer(service).oneshot(request).await.unwrap().into_body();
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false), "{code}");
    }
}
