//! What becomes of a write that the fence refuses.

use crate::{
    support::{FIRST, SOON, within, write},
    wall::{Mood, Wall, fence, refusal},
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use kube_leader_gate::{
    WriteGate, WriteGateLayer,
    election::LeaseEnd,
    leadership::{Grant, Grantor, Leadership, Term},
    request::Verb,
};
use kube_leader_gate_fence::{ErrFenced, RefusalLayer, refusal::Refusal};
use std::{convert::Infallible, io, sync::LazyLock, task::Poll, time::Duration};
use tower::{Layer, ServiceExt, service_fn};

const FENCE: &str = "operator.default.leader-gate";

#[tokio::test(start_paused = true)]
async fn a_fenced_write_is_reported() {
    let wall = Wall::new(Mood::Follows);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    write(&client).await.unwrap();
    wall.refuse_next();
    let error = write(&client).await.unwrap_err();
    let refused = ErrFenced::find(&error).unwrap();
    assert!(refused.message().contains("a holds the lease") && refused.verb() == Verb::Create);
    let text = refused.to_string();
    assert!(text.contains("refused an admitted write (create), and nothing was changed: things"), "{text}");
    assert!(a.candidate().can_write(), "the gate has not heard");
}

/// The usual verbs are there before the first refusal.
#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn fenced_writes_are_counted() {
    use kube_leader_gate_fence::WRITES_FENCED_TOTAL;
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    let recorder = DebuggingRecorder::new();
    let counters = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let wall = Wall::new(Mood::Follows);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let counted = || {
        let all =
            counters.snapshot().into_vec().into_iter().map(|(key, _, _, value)| (key.key().clone(), value));
        let mut all = all.filter(|(key, _)| key.name() == WRITES_FENCED_TOTAL).map(|(key, value)| {
            let labels: Vec<_> = key.labels().map(|it| format!("{}={}", it.key(), it.value())).collect();
            (labels.join(" "), value)
        });
        all.find(|(labels, _)| labels == "lease_namespace=default name=operator verb=create")
            .expect("it is there")
            .1
    };
    assert_eq!(counted(), DebugValue::Counter(0));
    wall.refuse_next();
    write(&client).await.unwrap_err();
    assert_eq!(counted(), DebugValue::Counter(1));
}

/// After the refusal, the stop takes as long as after an answered write.
#[tokio::test(start_paused = true)]
async fn s4_a_stop_after_a_refusal_does_not_wait() {
    let wall = Wall::new(Mood::Follows);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    wall.refuse_next();
    assert!(ErrFenced::find(&write(&client).await.unwrap_err()).is_some());
    assert_eq!(within(SOON, "it stops", a.stop()).await, LeaseEnd::Released);
}

/// This fence's layer, above a gate that admits writes, above `service`.
fn above<S>(layer: &RefusalLayer, service: S) -> Refusal<WriteGate<S>> {
    static LEADS: LazyLock<(Leadership, Grant)> = LazyLock::new(|| {
        let grantor = Box::leak(Box::new(Grantor::new()));
        let deadline = grantor.now().saturating_add(Duration::from_secs(100_000));
        (grantor.leadership(), grantor.grant(Term::new("uid", 1), deadline).expect("in time"))
    });
    layer.layer(WriteGateLayer::new(LEADS.0.clone()).layer(service))
}

type Answer = Response<StreamBody<stream::Iter<std::vec::IntoIter<io::Result<Frame<Bytes>>>>>>;

fn answer(code: StatusCode, frames: Vec<io::Result<Frame<Bytes>>>) -> Answer {
    Response::builder().status(code).body(StreamBody::new(stream::iter(frames))).unwrap()
}

async fn through(
    layer: &RefusalLayer,
    request: Request<()>,
    answer: Answer,
) -> Response<impl Body<Data = Bytes, Error = io::Error> + use<>> {
    let mut answer = Some(answer);
    let service = service_fn(move |_: Request<()>| {
        let answer = answer.take().expect("one request");
        async move { Ok::<_, Infallible>(answer) }
    });
    above(layer, service).oneshot(request).await.expect("an answer")
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
    let layer = fence().refusals();
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
    let outcome = above(&fence().refusals(), service).oneshot(Request::post(path).body(()).unwrap()).await;
    let error = outcome.err()?;
    Some(ErrFenced::find(&*error).expect("the fence's error").message().to_owned())
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

/// The webhook has tried a write of its own, and tells what became of it.
#[tokio::test]
async fn a_refusal_in_a_webhooks_words_comes_as_it_is() {
    const PODS: &str = "/api/v1/namespaces/a/pods";
    let text = refusal("x").into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let quoted = text.replace("things", "admission webhook \\\"w.example\\\" denied the request: things");
    assert!(recognised(PODS, text.as_bytes()).await.is_some());
    assert_eq!(recognised(PODS, quoted.as_bytes()).await, None);
    // As YAML.
    assert_eq!(recognised(PODS, format!("- {quoted}\n").as_bytes()).await, None);
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
    let answer = above(&fence().refusals(), service).oneshot(post);
    let mut body = within(Duration::from_secs(6), "the head", answer).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), marked);
}

#[tokio::test]
async fn body_of_a_403_is_not_polled_after_its_end() {
    for end in [None, Some(Err(io::Error::other("broken")))] {
        let data = Frame::data(Bytes::from_static(b"other"));
        let mut items = vec![Some(Ok(data)), end].into_iter();
        let body =
            StreamBody::new(stream::poll_fn(move |_| Poll::Ready(items.next().expect("its end was seen"))));
        let mut body = Some(body);
        let service = service_fn(move |_: Request<()>| {
            let answer = Response::builder().status(403).body(body.take().expect("one request")).unwrap();
            async { Ok::<_, Infallible>(answer) }
        });
        let post = Request::post("/api/v1/namespaces/a/pods").body(()).unwrap();
        let mut body = above(&fence().refusals(), service).oneshot(post).await.unwrap().into_body();
        while body.frame().await.is_some() {}
        assert!(body.frame().await.is_none() && body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}

#[tokio::test]
async fn empty_frames_of_a_403_are_bounded() {
    let mut frames = 0..100_000;
    let frames = stream::poll_fn(move |_| {
        frames.next().expect("a bound");
        Poll::Ready(Some(Ok::<_, Infallible>(Frame::data(Bytes::new()))))
    });
    let mut body = Some(StreamBody::new(frames));
    let service = service_fn(move |_: Request<()>| {
        let answer = Response::builder().status(403).body(body.take().expect("one request")).unwrap();
        async { Ok::<_, Infallible>(answer) }
    });
    let post = Request::post("/api/v1/namespaces/a/pods").body(()).unwrap();
    let answer = above(&fence().refusals(), service).oneshot(post).await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
}

/// The body's own length is what the caller sees.
#[tokio::test]
async fn an_answer_keeps_its_length() {
    let layer = fence().refusals();
    for code in [StatusCode::OK, StatusCode::FORBIDDEN] {
        let service = service_fn(move |_: Request<()>| async move {
            let body = Full::new(Bytes::from_static(b"12345"));
            Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
        });
        let request = Request::delete("/api/v1/namespaces/a/pods/b").body(()).unwrap();
        let body = above(&layer, service).oneshot(request).await.unwrap().into_body();
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false), "{code}");
    }
}
