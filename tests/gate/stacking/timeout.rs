//! A timeout, inside and outside the gate. The caller sees the first event, the loss or the timeout. The order of the
//! two layers does not matter.

use super::stage::{Builder, Outcome, Scene, ended, pass, until, within};
use http::Response;
use http_body_util::BodyExt;
use kube_client::Client;
use kube_leader_gate::{
    Election, LeaseTiming,
    testing::{ApiBody, Fault},
};
use std::time::Duration;
use tower::{timeout::TimeoutLayer, util::MapResponseLayer};

const LIMIT: Duration = Duration::from_secs(8);

fn inside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&TimeoutLayer::new(LIMIT)).with_layer(&election.layer()).build()
}

fn outside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&election.layer()).with_layer(&TimeoutLayer::new(LIMIT)).build()
}

/// tower-http's timeout answers with an empty response, so the body needs a default. kube's bodies have none.
fn of_tower_http(builder: Builder, election: &Election) -> Client {
    let layer = tower_http::timeout::TimeoutLayer::with_status_code(http::StatusCode::GATEWAY_TIMEOUT, LIMIT);
    let boxed = MapResponseLayer::new(|response: Response<ApiBody>| response.map(ApiBody::boxed_unsync));
    builder.with_layer(&boxed).with_layer(&layer).with_layer(&election.layer()).build()
}

fn of_tower_http_outside(builder: Builder, election: &Election) -> Client {
    let layer = tower_http::timeout::TimeoutLayer::with_status_code(http::StatusCode::GATEWAY_TIMEOUT, LIMIT);
    let boxed = MapResponseLayer::new(|response: Response<ApiBody>| response.map(ApiBody::boxed_unsync));
    builder.with_layer(&boxed).with_layer(&election.layer()).with_layer(&layer).build()
}

type Stack = fn(Builder, &Election) -> Client;

#[tokio::test(start_paused = true)]
async fn s2_loss_before_timeout_reports_loss() {
    for stack in [inside as Stack, outside, of_tower_http, of_tower_http_outside] {
        let scene = Scene::leading(stack).await;
        let _fault = scene.server.inject(Fault::hang_before().resource("configmaps"));
        let writing = scene.write("x");
        scene.have_arrived(1).await;
        pass(LIMIT / 2).await;
        scene.steal();
        until("the write is cut off", || writing.is_finished()).await;
        assert_eq!(ended(writing).await, Outcome::LeadershipLost);
        assert!(scene.arrived()[0].completed.is_none(), "the server saw the disconnect");
    }
}

/// The outcome is as unknown as that of a cut-off write. A write that hangs in the server is cancelled by the
/// disconnect. A write that took effect is not.
#[tokio::test(start_paused = true)]
async fn timeout_before_loss_reports_timeout() {
    let gateway = || Outcome::Status(504);
    let stacks: [(Stack, fn() -> Outcome); 4] = [
        (inside, || Outcome::Elapsed),
        (outside, || Outcome::Elapsed),
        (of_tower_http, gateway),
        (of_tower_http_outside, gateway),
    ];
    for (stack, seen) in stacks {
        for (fault, stands) in [(Fault::hang_before(), false), (Fault::hang_after(), true)] {
            let scene = Scene::leading(stack).await;
            let _fault = scene.server.inject(fault.resource("configmaps"));
            let writing = scene.write("x");
            scene.have_arrived(1).await;
            assert_eq!(within(LIMIT * 2, "the timeout", writing).await.unwrap(), seen());
            assert_eq!(scene.under_way(), 0);
            assert_eq!(scene.arrived().len(), 1);
            assert_eq!(scene.stands("x"), stands);
            assert!(scene.running.candidate().can_write());
        }
    }
}

/// Both the term and the timeout are over when the process wakes. The gate is checked first, except inside
/// tower-http's timeout.
#[tokio::test(start_paused = true)]
async fn s2_process_frozen_past_loss_and_timeout_reports_loss() {
    for (stack, seen) in [
        (inside as Stack, Outcome::LeadershipLost),
        (outside, Outcome::LeadershipLost),
        (of_tower_http, Outcome::LeadershipLost),
        (of_tower_http_outside, Outcome::Status(504)),
    ] {
        let scene = Scene::leading(stack).await;
        let _fault = scene.server.inject(Fault::hang_before().resource("configmaps"));
        let writing = scene.write("x");
        scene.have_arrived(1).await;
        tokio::time::advance(LeaseTiming::fast().renew_deadline() + LIMIT).await;
        assert_eq!(ended(writing).await, seen);
        assert_eq!(scene.under_way(), 0);
    }
}
