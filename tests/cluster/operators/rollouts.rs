//! Rollouts of all replicas under load, on a real API server.

use super::world::World;
use crate::support::PATIENCE;
use kube_leader_gate::{CancellationToken, testing::SuccessionKind};
use std::time::Duration;
use test_support::harness::say;
use tokio::time::sleep;

/// The pause between two actions of the user.
const BUSY: Duration = Duration::from_millis(15);

pub async fn gated() {
    rollout_misses_and_duplicates_no_object("gated").await;
}

pub async fn leading_only() {
    rollout_misses_and_duplicates_no_object("leading-only").await;
}

async fn rollout_misses_and_duplicates_no_object(mode: &'static str) {
    let mut world = World::with_replicas(mode).await;
    let mut user = world.user();
    for _ in 0..10 {
        user.create().await.unwrap();
    }
    user.satisfied(PATIENCE).await.unwrap();
    let over = CancellationToken::new();
    let rollouts = async {
        replace_all(&mut world).await;
        restart_leaders(&mut world).await;
        over.cancel();
    };
    let (busy, ()) = tokio::join!(user.keep_busy(BUSY, &over), rollouts);
    busy.unwrap();
    user.delete_half().await.unwrap();
    if let Err(missed) = user.satisfied(PATIENCE).await {
        panic!("{missed}\n{}", world.logs());
    }
    say(format_args!("{mode}: {} objects", user.objects()));
    let report = world.judged();
    // The first three replicas are gone, and three leaders have been restarted.
    assert!(report.changes.len() >= 4, "{:#?}", report.changes);
    for change in &report.changes {
        assert_eq!(change.kind, SuccessionKind::Graceful, "{change:?}");
    }
}

/// As a Deployment does: for each old pod one new pod with a new name, one after the other.
async fn replace_all(world: &mut World) {
    for _ in 0..3 {
        world.start_new();
        world.replicas.remove(0).terminate().await;
        world.leader().await;
        pause().await;
    }
}

/// As a `StatefulSet` does: the name comes back. It replaces the leader each time.
async fn restart_leaders(world: &mut World) {
    for _ in 0..3 {
        let leader = world.take_leader().await;
        let name = leader.name.clone();
        leader.terminate().await;
        world.start(&name);
        world.leader().await;
        pause().await;
    }
}

/// Some work for the current leader.
async fn pause() {
    sleep(Duration::from_millis(500)).await;
}
