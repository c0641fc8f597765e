//! A server that goes away and comes back.

use crate::{
    candidate::{following, leading, timing},
    support::{is_not_leader, judged, throughout, until},
    world::World,
};
use kube_leader_gate::leadership::Loss;
use std::time::{Duration, Instant};

pub async fn s1_an_outage_costs_a_term_only_when_it_outlasts_the_deadline(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let term = a.elected().await;
    let _writers = [a.writing(), b.writing()];
    for _ in 0..3 {
        a.renews(1).await;
        world.go_away().await;
        tokio::time::sleep(timing().tolerated_outage()).await;
        world.come_back().await;
        a.renews(1).await;
        assert_eq!(a.leader().term(), Some(term.clone()), "and has led throughout");
    }

    a.renews(1).await;
    let renewed = Instant::now();
    world.go_away().await;
    until("the gate closes", async || !a.leader().can_write()).await;
    let after = renewed.elapsed();
    assert!(
        after <= timing().renew_deadline() + Duration::from_millis(50),
        "{after:?} after the last renewal"
    );
    assert!(after >= timing().renew_deadline() - timing().retry_period(), "{after:?} after the last renewal");
    until("and is known to be", async || a.leader().state().lost == Some(Loss::Expired)).await;
    // A rejection needs no server.
    assert!(is_not_leader(&a.write().await) && is_not_leader(&b.write().await));
    throughout(timing().lease_duration(), "nobody leads", || {
        !a.leader().is_leader() && !b.leader().is_leader()
    })
    .await;
    world.come_back().await;
    until("one leads and both know it", async || {
        a.leader().is_leader() != b.leader().is_leader() && a.leader().holder() == b.leader().holder()
    })
    .await;
    assert_ne!(a.leader().term(), Some(term));
    let verdict = judged(world, &["candidate-0", "candidate-1"]).await;
    assert_eq!(verdict.terms.len(), 2, "{:?}", verdict.terms);
}
