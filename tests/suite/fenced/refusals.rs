//! What becomes of a write that the fence refuses.

use super::wall::{Mood, Wall, refusal};
use crate::{
    metrics::scrape::{Exporter, PUBLISHED},
    support::{FIRST, SOON, builder, is_not_leader, pass, until, within, write},
};
use bytes::Bytes;
use futures_util::stream;
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
