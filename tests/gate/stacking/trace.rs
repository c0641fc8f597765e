//! What tower-http's trace records, inside and outside the gate.

use super::stage::{Builder, Outcome, Scene, ended};
use http::{Request, Response};
use kube_client::{Client, client::Body};
use kube_leader_gate::{Election, testing::Fault};
use std::{
    fmt::Display,
    sync::{Arc, Mutex},
    time::Duration,
};
use tower_http::trace::TraceLayer;
use tracing::Span;

/// What the trace has seen of writes.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, what: impl Display) {
        self.0.lock().unwrap().push(what.to_string());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn stack(&self, inside: bool) -> impl FnOnce(Builder, &Election) -> Client {
        let (requests, responses, failures) = (self.clone(), self.clone(), self.clone());
        move |builder, election| {
            let trace = TraceLayer::new_for_http()
                .on_request(move |request: &Request<Body>, _: &Span| requests.add(request.method()))
                .on_response(move |response: &Response<_>, _: Duration, _: &Span| {
                    responses.add(response.status());
                })
                .on_failure(move |failure, _: Duration, _: &Span| failures.add(failure));
            if inside {
                builder.with_layer(&trace).with_layer(&election.layer()).build()
            } else {
                builder.with_layer(&election.layer()).with_layer(&trace).build()
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn trace_inside_omits_end_of_cut_off_writes() {
    let seen = Seen::default();
    let scene = Scene::leading(seen.stack(true)).await;
    assert_eq!(ended(scene.write("x")).await, Outcome::Done);
    assert_eq!(seen.take(), ["POST", "201 Created"]);

    let _fault = scene.server.inject(Fault::hang_before().resource("configmaps"));
    let writing = scene.write("y");
    scene.have_arrived(2).await;
    scene.steal();
    assert_eq!(ended(writing).await, Outcome::LeadershipLost);
    assert_eq!(seen.take(), ["POST"]);

    assert_eq!(ended(scene.write("z")).await, Outcome::NotLeader);
    assert_eq!(seen.take(), [""; 0]);
    assert_eq!(scene.arrived().len(), 2);
}

/// This includes every attempt of a follower, as a failure: by default one line at ERROR for each.
#[tokio::test(start_paused = true)]
async fn trace_outside_records_what_caller_sees() {
    let seen = Seen::default();
    let scene = Scene::leading(seen.stack(false)).await;
    assert_eq!(ended(scene.write("x")).await, Outcome::Done);
    assert_eq!(seen.take(), ["POST", "201 Created"]);

    let _fault = scene.server.inject(Fault::hang_before().resource("configmaps"));
    let writing = scene.write("y");
    scene.have_arrived(2).await;
    scene.steal();
    assert_eq!(ended(writing).await, Outcome::LeadershipLost);
    let [request, failure] = seen.take().try_into().unwrap();
    assert_eq!(request, "POST");
    assert!(failure.contains("write cut off as client lost leadership"), "{failure}");

    assert_eq!(ended(scene.write("z")).await, Outcome::NotLeader);
    let [request, failure] = seen.take().try_into().unwrap();
    assert_eq!(request, "POST");
    assert!(failure.contains("write attempt rejected as client is not leader"), "{failure}");
    assert_eq!(scene.arrived().len(), 2);
}
