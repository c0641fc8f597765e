//! A rate limit, inside and outside the gate: like a concurrency limit, it waits before the gate admits a write.

use super::stage::{Builder, Outcome, Scene, pass, within};
use kube_client::Client;
use kube_leader_gate::Election;
use std::time::Duration;
use tower::{buffer::BufferLayer, limit::RateLimitLayer};

const MINUTE: Duration = Duration::from_secs(60);

fn limit() -> RateLimitLayer {
    RateLimitLayer::new(1, MINUTE)
}

fn inside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&limit()).with_layer(&election.layer()).build()
}

fn outside(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&election.layer()).with_layer(&limit()).build()
}

fn inside_behind_a_buffer(builder: Builder, election: &Election) -> Client {
    builder.with_layer(&limit()).with_layer(&BufferLayer::new(16)).with_layer(&election.layer()).build()
}

/// The second of two writes waits for its turn, and then the term is lost. Returns how many writes are open, what the
/// caller sees and when, and what has reached the server.
async fn at_the_loss(stack: impl FnOnce(Builder, &Election) -> Client) -> (usize, Outcome, bool, usize) {
    let scene = Scene::leading(stack).await;
    assert_eq!(scene.write("first").await.unwrap(), Outcome::Done);
    let second = scene.write("second");
    pass(Duration::from_secs(1)).await;
    let admitted = scene.under_way();
    scene.steal();
    pass(Duration::from_secs(1)).await;
    let at_once = second.is_finished();
    let seen = within(MINUTE, "its turn comes", second).await.unwrap();
    pass(MINUTE * 2).await;
    (admitted, seen, at_once, scene.arrived().len())
}

#[tokio::test(start_paused = true)]
async fn s2_rate_limited_write_is_not_sent_after_loss() {
    for stack in [inside, outside] {
        // The gate rejects it when its turn comes. Before that, the gate does not see it.
        assert_eq!(at_the_loss(stack).await, (0, Outcome::NotLeader, false, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn s2_write_waiting_in_buffer_inside_is_cut_off() {
    assert_eq!(at_the_loss(inside_behind_a_buffer).await, (1, Outcome::LeadershipLost, true, 1));
}

/// A follower's rejected writes use up the rate of its own reads, unless the limit is inside.
#[tokio::test(start_paused = true)]
async fn rejected_write_uses_rate_of_limit_outside() {
    for (stack, waits) in [(inside as fn(Builder, &Election) -> Client, false), (outside, true)] {
        let scene = Scene::following(stack).await;
        assert_eq!(scene.write("x").await.unwrap(), Outcome::NotLeader);
        let read = tokio::time::timeout(MINUTE / 2, scene.read()).await;
        assert_eq!(read.is_err(), waits);
    }
}
