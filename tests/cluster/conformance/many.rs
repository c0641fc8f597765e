//! Several elections in one process.

use crate::{
    candidate::{builder_for, patient},
    support::{PATIENCE, until, within},
    world::World,
};
use futures_util::future::join_all;
use kube_leader_gate::election::{LeaseEnd, Running};

const SHARDS: usize = 20;

/// One process with a candidate for each shard.
fn replica(world: &impl World, user: &str) -> Vec<Running> {
    let pool = world.pool(user).share_watches();
    let start = |shard| {
        let builder = builder_for(world, user, &format!("shard-{shard}")).timing(patient());
        builder.build_in(&pool).expect("a valid election").start()
    };
    (0..SHARDS).map(start).collect()
}

async fn leads(replica: &[Running]) {
    within(PATIENCE, "it leads everywhere", join_all(replica.iter().map(|it| it.candidate().elected())))
        .await;
}

/// With the permission to watch the whole namespace.
pub async fn many_elections_hand_over_by_one_watch(world: &impl World) {
    let (a_user, b_user) = ("candidate-0", "candidate-1");
    let a = replica(world, a_user);
    leads(&a).await;
    let b = replica(world, b_user);
    let knows = |it: &Running| it.candidate().holder().as_deref() == Some(a_user);
    until("b knows a", async || b.iter().all(knows)).await;
    until("b watches", async || world.reads(b_user, "watch").await > 0).await;
    let stopped = within(PATIENCE, "a stops", join_all(a.into_iter().map(Running::stop))).await;
    assert_eq!(stopped, [LeaseEnd::Released; SHARDS]);
    leads(&b).await;
    assert_eq!(world.reads(a_user, "watch").await, 1);
    assert_eq!(world.reads(b_user, "watch").await, 1);
}
