//! Prioritised election.

use crate::{
    candidate::{Contender, builder, start, timing},
    support::{lease_writes, until},
    world::World,
};
use kube_leader_gate::{election::Priority, testing::WriteRecord};
use test_support::assert_safety;

async fn ranked(world: &impl World, user: &str, key: &str) -> Contender {
    let priority = Priority::ranked(key, ["high", "low"]).expect("a priority");
    start(world, user, builder(world, user).priority(priority)).await
}

async fn work_of(world: &impl World, user: &str) -> Vec<WriteRecord> {
    let mut log = world.writes().await;
    log.retain(|write| write.user == user && write.resource == "configmaps" && write.took_effect());
    log
}

pub async fn preferred_candidate_takes_over_without_overlapping_writes(world: &impl World) {
    let low = ranked(world, "candidate-0", "low").await;
    low.elected().await;
    let _writers = [low.writing(), low.writing()];
    low.renews(1).await;
    let high = ranked(world, "candidate-1", "high").await;
    let _more_writers = [high.writing(), high.writing()];
    high.elected().await;
    assert!(!low.candidate().is_leader());
    until("it writes", async || work_of(world, "candidate-1").await.len() > 10).await;
    high.renews(1).await;
    let (before, after) = (work_of(world, "candidate-0").await, work_of(world, "candidate-1").await);
    let first = after.iter().map(|write| write.received).min().expect("a write");
    for write in before {
        assert_safety!(
            write.completed.expect("an answer") < first,
            "{write:?} when another writes from {first:?} on"
        );
    }
    assert!(high.candidate().is_leader(), "and no candidate takes it back");
}

/// The old holder may still write: it does not hear that it is asked.
pub async fn successor_waits_for_silent_holder(world: &impl World) {
    let low = ranked(world, "candidate-0", "low").await;
    low.elected().await;
    low.renews(1).await;
    low.line.hold();
    let renewals = lease_writes(world, "candidate-0").await;
    let high = ranked(world, "candidate-1", "high").await;
    until("it takes the lease", async || !lease_writes(world, "candidate-1").await.is_empty()).await;
    assert!(!high.candidate().is_leader());
    let _writer = high.writing();
    high.elected().await;
    until("it writes", async || !work_of(world, "candidate-1").await.is_empty()).await;
    let first = work_of(world, "candidate-1").await[0].received.at;
    let last = renewals.last().expect("a renewal").received.at;
    assert_safety!(first >= last + timing().lease_duration(), "written at {first:?}, renewed at {last:?}");
}
