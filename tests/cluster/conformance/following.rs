//! What a follower does while it waits, and how it learns that it may lead.

use crate::{
    candidate::{Contender, builder, patient, start},
    support::{judged, lease_writes, no_swap_is_lost_twice, throughout, until},
    world::World,
};
use futures_util::future::join_all;
use kube_leader_gate::LeaseTiming;
use std::time::Duration;

/// client-go's sends 19 requests a minute at 15/10/2 s.
pub async fn steady_follower_only_watches(world: &impl World) {
    // A watch without events for two retry periods counts as silent. A shorter period would not suit a busy machine.
    let (lease, renew, retry) = (Duration::from_secs(45), Duration::from_secs(30), Duration::from_secs(5));
    let timing = LeaseTiming::new(lease, renew, retry).expect("a valid timing");
    let candidate = async |user| start(world, user, builder(world, user).timing(timing)).await;
    let a = candidate("candidate-0").await;
    a.elected().await;
    let b = candidate("candidate-1").await;
    until("its watch stands", async || world.reads("candidate-1", "watch").await > 0).await;
    a.renews(1).await;
    let (gets, watches) =
        (world.reads("candidate-1", "get").await, world.reads("candidate-1", "watch").await);
    a.renews(3).await;
    assert_eq!(world.reads("candidate-1", "get").await, gets, "it reads");
    assert_eq!(world.reads("candidate-1", "watch").await, watches, "it watches anew");
    assert_eq!(world.reads("candidate-1", "list").await, 0);
    assert!(lease_writes(world, "candidate-1").await.is_empty(), "it writes");
    assert!(!b.candidate().is_leader());
}

/// A poll cannot explain it: the retry period is 26 s.
pub async fn handover_by_watch_needs_no_poll(world: &impl World) {
    let candidate = async |user| start(world, user, builder(world, user).timing(patient())).await;
    let mut names = vec!["candidate-0", "candidate-1", "candidate-2"];
    let mut all: Vec<Contender> = join_all(names.iter().map(|user| candidate(*user))).await;
    for left in (1..=2).rev() {
        until("all know the holder", async || known(&all)).await;
        let leader = all.iter().position(|candidate| candidate.candidate().is_leader()).expect("a leader");
        let (user, leader) = (names.remove(leader), all.remove(leader));
        leader.write().await.expect("the leader writes");
        leader.running.stop().await;
        until("another one leads", async || known(&all)).await;
        let verdict = judged(world, &["candidate-0", "candidate-1", "candidate-2"]).await;
        let gaps = verdict.handovers();
        assert_eq!(gaps.len(), 3 - left, "{:?}", verdict.terms);
        assert!(gaps[gaps.len() - 1] < world.slack(), "after {user}: {gaps:?}");
    }
}

/// One candidate leads, and the others know it.
fn known(all: &[Contender]) -> bool {
    let mut leaders = all.iter().filter(|candidate| candidate.candidate().is_leader());
    let (Some(leader), None) = (leaders.next(), leaders.next()) else { return false };
    let identity = leader.candidate().identity().as_str();
    all.iter().all(|candidate| candidate.candidate().holder().as_deref() == Some(identity))
}

pub async fn ended_watch_is_started_again(world: &impl World) {
    let candidate = async |user| start(world, user, builder(world, user).timing(patient())).await;
    let a = candidate("candidate-0").await;
    a.elected().await;
    let b = candidate("candidate-1").await;
    let watches = async |user, count| {
        until("its watch stands", async || world.reads(user, "watch").await >= count).await;
    };
    watches("candidate-1", 1).await;
    for round in 2..=3 {
        b.line.reset();
        watches("candidate-1", round).await;
    }
    assert!(world.reads("candidate-1", "watch").await <= 4, "no flood");
    // The release came while no watch was open. The read that goes with a new watch shows it.
    b.line.cut();
    a.running.stop().await;
    b.line.mend();
    b.elected().await;
}

/// All followers see the release at the same instant.
pub async fn many_followers_send_few_requests_at_release(world: &impl World) {
    let names: Vec<String> = (0..=16).map(|number| format!("candidate-{number}")).collect();
    let candidate = async |user: &str| start(world, user, builder(world, user).timing(patient())).await;
    let a = candidate(&names[0]).await;
    a.elected().await;
    let crowd = join_all(names[1..].iter().map(|name| candidate(name))).await;
    let watching = async |name: &String| world.reads(name, "watch").await > 0;
    for name in &names {
        until("all watch", async || watching(name).await).await;
    }
    let reads = world.reads("candidate-1", "get").await;
    a.running.stop().await;
    until("one candidate leads and all know it", async || known(&crowd)).await;
    throughout(Duration::from_secs(2), "one candidate leads", || known(&crowd)).await;
    no_swap_is_lost_twice(world).await;
    let reads = world.reads("candidate-1", "get").await - reads;
    assert!(reads <= 4, "{reads} reads by one of them");
}
