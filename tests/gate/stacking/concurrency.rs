//! A concurrency limit, inside and outside the gate. On either side, tower's limits wait in `poll_ready`, which is
//! before the gate admits a write. Only behind a buffer inside the gate does an admitted write wait.

use super::stage::{Builder, Outcome, Scene, ended, within};
use kube_client::{Client, api::WatchParams};
use kube_leader_gate::{Election, testing::Fault};
use std::time::Duration;
use tower::{
    buffer::BufferLayer,
    limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer},
};

fn inside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&ConcurrencyLimitLayer::new(1)).with_layer(&election.layer()).build()
}

fn outside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&election.layer()).with_layer(&ConcurrencyLimitLayer::new(1)).build()
}

fn inside_behind_a_buffer(builder: Builder, election: &Election) -> Client {
    builder
        .with_layer(&ConcurrencyLimitLayer::new(1))
        .with_layer(&BufferLayer::new(16))
        .with_layer(&election.layer())
        .build()
}

fn wrapped(builder: Builder, election: &Election) -> Client {
    election.wrap(builder.with_layer(&ConcurrencyLimitLayer::new(1)).build())
}

/// One write hangs in the server, another waits for its permit, and then the term is lost. Returns how many writes
/// were admitted, what the callers see, and what has reached the server.
async fn at_the_loss(stack: impl FnOnce(Builder, &Election) -> Client) -> (usize, [Outcome; 2], usize) {
    let scene = Scene::leading(stack).await;
    let _fault = scene.server.inject(Fault::hang_before().resource("configmaps").times(1));
    let first = scene.write("first");
    scene.have_arrived(1).await;
    let second = scene.write("second");
    super::stage::pass(Duration::from_secs(1)).await;
    assert!(!second.is_finished());
    let admitted = scene.under_way();
    scene.steal();
    let seen = [ended(first).await, ended(second).await];
    super::stage::pass(Duration::from_secs(60)).await;
    assert_eq!(scene.under_way(), 0);
    (admitted, seen, scene.arrived().len())
}

#[tokio::test(start_paused = true)]
async fn s2_write_waiting_for_permit_at_loss_is_unsent() {
    for stack in [inside, outside] {
        let seen = at_the_loss(stack).await;
        assert_eq!(seen, (1, [Outcome::LeadershipLost, Outcome::NotLeader], 1));
    }
}

/// The write is not sent either, but the gate cannot know that. A wrapped client begins with a buffer.
#[tokio::test(start_paused = true)]
async fn s2_write_waiting_in_buffer_inside_is_cut_off() {
    for stack in [inside_behind_a_buffer, wrapped] {
        let seen = at_the_loss(stack).await;
        assert_eq!(seen, (2, [Outcome::LeadershipLost, Outcome::LeadershipLost], 1));
    }
}

/// A write that the gate rejects keeps the reserved permit. That costs nothing if no other client needs it.
#[tokio::test(start_paused = true)]
async fn rejected_write_keeps_permit_of_limit_inside() {
    for (gate_outside, starves) in [(true, true), (false, false)] {
        let limit = GlobalConcurrencyLimitLayer::new(1);
        let stack = |builder: Builder, election: &Election| {
            if gate_outside {
                builder.with_layer(&limit).with_layer(&election.layer()).build()
            } else {
                builder.with_layer(&election.layer()).with_layer(&limit).build()
            }
        };
        let (one, two) = (Scene::following(stack).await, Scene::leading(stack).await);
        two.read().await;
        assert_eq!(ended(one.write("x")).await, Outcome::NotLeader);
        let read = tokio::time::timeout(Duration::from_secs(60), two.read()).await;
        assert_eq!(read.is_err(), starves);
        // The permit comes back with the next request of the client that has it.
        within(super::stage::SOON, "it reads", one.read()).await;
        within(super::stage::SOON, "it reads", two.read()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn limit_delays_reads_but_not_open_watch() {
    for stack in [inside, outside] {
        let scene = Scene::leading(stack).await;
        let _watch = scene.maps.watch(&WatchParams::default(), "0").await.expect("a watch");
        scene.read().await;
        let _fault = scene
            .server
            .inject(Fault::delay_before(Duration::from_secs(6)).resource("configmaps").verb("create"));
        let writing = scene.write("x");
        scene.have_arrived(1).await;
        let read = tokio::time::timeout(Duration::from_secs(4), scene.read()).await;
        assert!(read.is_err());
        assert_eq!(within(Duration::from_secs(30), "it ends", writing).await.unwrap(), Outcome::Done);
    }
}
