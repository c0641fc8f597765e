//! A leader is killed on a real API server. No replica leads until its lease has expired, and the next leader
//! reconciles what changes meanwhile.

use super::world::World;
use crate::support::PATIENCE;
use kube_leader_gate::testing::SuccessionKind;
use std::time::Duration;
use test_support::harness::say;

/// From the next leader's gain until everything is right. It takes a fifth of a second. The operator's own retry of a
/// failed reconciliation comes after thirty.
const CAUGHT_UP: Duration = Duration::from_secs(25);

pub async fn gated() {
    changes_without_leader_are_reconciled_at_next_gain("gated").await;
}

pub async fn leading_only() {
    changes_without_leader_are_reconciled_at_next_gain("leading-only").await;
}

async fn changes_without_leader_are_reconciled_at_next_gain(mode: &'static str) {
    let mut world = World::with_replicas(mode).await;
    let mut user = world.user();
    let (changed, deleted) = (user.create().await.unwrap(), user.create().await.unwrap());
    user.satisfied(PATIENCE).await.unwrap();

    world.take_leader().await.kill();
    let last = world.writes().len();
    user.change(&changed, "another person").await.unwrap();
    user.delete(&deleted).await.unwrap();
    let created = user.create().await.unwrap();
    world.leader().await;
    if let Err(missed) = user.satisfied(PATIENCE).await {
        panic!("{missed}\n{}", world.logs());
    }

    let report = world.judged();
    let [change] = &report.changes[..] else { panic!("{:#?}", report.changes) };
    assert_eq!(change.kind, SuccessionKind::Takeover);
    let gap: Vec<_> = world.writes().split_off(last);
    let gained =
        gap.iter().find(|it| it.lease.as_ref().is_some_and(|lease| lease.holder_identity == change.to));
    let gained = gained.and_then(|it| it.completed).expect("an acquisition").at;
    for name in [changed, deleted, created] {
        let of_it = gap.iter().filter(|it| it.name.as_ref() == Some(&name) && it.user == change.to);
        let done = of_it.filter_map(|it| it.completed).max().expect("it has been written").at;
        let after = done.duration_since(gained);
        say(format_args!("{mode}: {name} was reconciled {after:.1?} after the gain"));
        assert!(after < CAUGHT_UP, "{name}: {after:?}");
    }
}
