//! A retry layer, inside and outside the gate.

use super::stage::{Builder, LEASE, Outcome, SOON, Scene, ended, hold, pass, until, within};
use http::{Request, Response};
use kube_client::{
    Client,
    client::{Body, retry::RetryPolicy},
};
use kube_leader_gate::{
    Election, ErrLeadershipLost, ErrNotLeader,
    election::LeaseEnd,
    testing::{ApiBody, BoxError, Fault},
};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tower::{
    retry::{Policy, RetryLayer},
    timeout::TimeoutLayer,
};

const HOUR: Duration = Duration::from_secs(3600);

/// kube's own policy: 429, 503 and 504, for as long as it takes.
fn statuses() -> RetryPolicy {
    RetryPolicy::new(Duration::from_millis(100), Duration::from_secs(1), 1_000, true).unwrap()
}

/// Retries errors too: all of them, as a careless policy does, or all but the gate's.
#[derive(Clone)]
struct Errors {
    kube: RetryPolicy,
    heeds_the_gate: bool,
    left: u32,
}

impl Errors {
    fn all(heeds_the_gate: bool) -> RetryLayer<Self> {
        RetryLayer::new(Self { kube: statuses(), heeds_the_gate, left: 50 })
    }
}

impl Policy<Request<Body>, Response<ApiBody>, BoxError> for Errors {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<ApiBody>, BoxError>,
    ) -> Option<Sleep> {
        let Err(error) = result else { return self.kube.retry(request, result) };
        let of_the_gate =
            ErrNotLeader::find(&**error).is_some() || ErrLeadershipLost::find(&**error).is_some();
        if self.left == 0 || self.heeds_the_gate && of_the_gate {
            return None;
        }
        self.left -= 1;
        Some(tokio::time::sleep(Duration::from_millis(100)))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        <RetryPolicy as Policy<Request<Body>, Response<ApiBody>, BoxError>>::clone_request(
            &mut self.kube,
            request,
        )
    }
}

fn inside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&RetryLayer::new(statuses())).with_layer(&election.layer()).build()
}

fn outside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&election.layer()).with_layer(&RetryLayer::new(statuses())).build()
}

fn unavailable() -> Fault {
    Fault::status(503).resource("configmaps")
}

#[tokio::test(start_paused = true)]
async fn s2_retry_inside_sends_nothing_after_loss() {
    let scene = Scene::leading(inside).await;
    let _fault = scene.server.inject(unavailable());
    let writing = scene.write("x");
    scene.have_arrived(3).await;
    scene.steal();
    // The gate does not know the outcome: an attempt may have taken effect.
    assert_eq!(ended(writing).await, Outcome::LeadershipLost);
    let before = scene.arrived().len();
    pass(HOUR).await;
    assert_eq!(scene.arrived().len(), before);
}

#[tokio::test(start_paused = true)]
async fn s2_retry_outside_is_rejected_after_loss() {
    let scene = Scene::leading(outside).await;
    let _fault = scene.server.inject(unavailable());
    let writing = scene.write("x");
    scene.have_arrived(3).await;
    scene.steal();
    // This is true of the last attempt alone: the earlier ones did reach the server.
    assert_eq!(ended(writing).await, Outcome::NotLeader);
    let before = scene.arrived().len();
    pass(HOUR).await;
    assert_eq!(scene.arrived().len(), before);
}

/// The trap: the error of the last attempt says that nothing was sent, but the first attempt has been carried out.
#[tokio::test(start_paused = true)]
async fn retry_of_any_error_hides_cut_off_write() {
    for (heeds_the_gate, seen) in [(false, Outcome::NotLeader), (true, Outcome::LeadershipLost)] {
        let scene = Scene::leading(|builder, election| {
            builder.with_layer(&election.layer()).with_layer(&Errors::all(heeds_the_gate)).build()
        })
        .await;
        let _fault = scene.server.inject(Fault::hang_after().resource("configmaps"));
        let writing = scene.write("x");
        scene.have_arrived(1).await;
        until("it takes effect", || scene.stands("x")).await;
        scene.steal();
        assert_eq!(ended(writing).await, seen);
        assert_eq!(scene.arrived().len(), 1);
        assert!(scene.stands("x"));
    }
}

/// Another trap: the write is a follower's decision, and passes when this replica leads.
#[tokio::test(start_paused = true)]
async fn retry_of_any_error_sends_refused_write_after_gain() {
    for (heeds_the_gate, seen, arrived) in [(false, Outcome::Done, 1), (true, Outcome::NotLeader, 0)] {
        let scene = Scene::following(|builder, election| {
            builder.with_layer(&election.layer()).with_layer(&Errors::all(heeds_the_gate)).build()
        })
        .await;
        let writing = scene.write("x");
        pass(Duration::from_millis(50)).await; // the gate refuses it
        let release = |lease: &mut Value| {
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["leaseDurationSeconds"] = 1.into();
            lease["spec"]["acquireTime"] = "2126-01-01T00:00:00.000000Z".into();
            lease["spec"]["renewTime"] = "2126-01-01T00:00:00.000000Z".into();
        };
        scene.server.edit("outsider", LEASE, release).expect("the lease is there");
        within(SOON, "the candidate leads", scene.running.candidate().elected()).await;
        assert_eq!(ended(writing).await, seen);
        assert_eq!(scene.arrived().len(), arrived);
    }
}

/// The caller decided in one term, and the retry writes in another. Other replicas may have written in between.
#[tokio::test(start_paused = true)]
async fn only_retry_outside_can_send_in_later_term() {
    async fn attempts(scene: &Scene) -> (Outcome, usize) {
        let later = Fault::status_retry_after(503, Duration::from_secs(60)).resource("configmaps").times(1);
        let _fault = scene.server.inject(later);
        let writing = scene.write("x");
        scene.have_arrived(1).await;
        hold(&scene.server, 15);
        until("it is a follower", || !scene.running.candidate().can_write()).await;
        let term =
            within(Duration::from_secs(20), "the candidate leads again", scene.running.candidate().elected())
                .await;
        assert_eq!(term.transitions(), 8);
        pass(Duration::from_secs(60)).await;
        (ended(writing).await, scene.arrived().len())
    }
    assert_eq!(attempts(&Scene::leading(outside).await).await, (Outcome::Done, 2));
    assert_eq!(attempts(&Scene::leading(inside).await).await, (Outcome::LeadershipLost, 1));
}

/// A retry inside counts as an open write, also while it waits. The stop waits for it, and then until it can no
/// longer take effect.
#[tokio::test(start_paused = true)]
async fn retry_inside_delays_stop_without_timeout() {
    async fn stop(stack: impl FnOnce(Builder, &Election) -> Client) -> (LeaseEnd, Outcome, u64) {
        let scene = Scene::leading(stack).await;
        let _fault = scene.server.inject(Fault::status_retry_after(429, HOUR).resource("configmaps"));
        let writing = scene.write("x");
        scene.have_arrived(1).await;
        let began = Instant::now();
        let stopped = within(Duration::from_secs(16), "the candidate stops", scene.running.stop()).await;
        let took = (began.elapsed() + Duration::from_millis(500)).as_secs();
        let outcome = within(HOUR * 2, "the write ends", writing).await.unwrap();
        assert_eq!(super::stage::arrived(&scene.server).len(), 1);
        (stopped, outcome, took)
    }
    // What kube's own stack has.
    let kube = || RetryLayer::new(RetryPolicy::server_retry());
    let bare =
        stop(|builder, election| builder.with_layer(&kube()).with_layer(&election.layer()).build()).await;
    assert_eq!(bare, (LeaseEnd::Released, Outcome::LeadershipLost, 15));
    let bound = TimeoutLayer::new(Duration::from_secs(8));
    let bounded = stop(|builder, election| {
        builder.with_layer(&kube()).with_layer(&bound).with_layer(&election.layer()).build()
    })
    .await;
    assert_eq!(bounded, (LeaseEnd::Released, Outcome::Elapsed, 13));
    // With the retry outside, no write is open while it waits.
    let outside =
        stop(|builder, election| builder.with_layer(&election.layer()).with_layer(&kube()).build()).await;
    assert_eq!(outside, (LeaseEnd::Released, Outcome::NotLeader, 0));
}

#[tokio::test(start_paused = true)]
async fn retry_succeeds_on_both_sides_without_loss() {
    for stack in [inside, outside] {
        let scene = Scene::leading(stack).await;
        let _fault = scene.server.inject(unavailable().times(3));
        assert_eq!(ended(scene.write("x")).await, Outcome::Done);
        let statuses = scene.arrived().iter().map(|write| write.status).collect::<Vec<_>>();
        assert_eq!(statuses, [503, 503, 503, 201]);
    }
}
