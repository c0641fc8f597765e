//! A server that goes away and comes back.

use crate::{
    candidate::{following, leading, timing},
    support::{is_not_leader, judged, lease_writes, throughout, until},
    world::World,
};
use kube_leader_gate::{leadership::Loss, testing::SuccessionKind};
use std::time::Duration;
use test_support::assert_safety;
use tokio::time::Instant;

pub async fn s1_outage_ends_term_only_past_its_deadline(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let term = a.elected().await;
    let _writers = [a.writing(), b.writing()];
    for _ in 0..3 {
        a.renews(1).await;
        world.go_away().await;
        tokio::time::sleep(timing().tolerated_outage().mul_f64(0.8)).await;
        world.come_back().await;
        a.renews(1).await;
        assert_eq!(a.candidate().term(), Some(term.clone()), "and has led throughout");
    }

    a.renews(1).await;
    world.go_away().await;
    let gone = Instant::now();
    // An answer that is on its way now only moves its deadline on.
    let due = gone + a.candidate().leadership().time_left().expect("it leads");
    let mut last_open = gone;
    until("the gate closes", async || {
        // In this order: a slow check counts as an early one.
        let now = Instant::now();
        let open = a.candidate().can_write();
        last_open = if open { now } else { last_open };
        !open
    })
    .await;
    let closed = Instant::now();
    until("and is known to be", async || a.candidate().leadership().state().lost == Some(Loss::Expired))
        .await;
    // A rejection needs no server.
    assert!(is_not_leader(&a.write().await) && is_not_leader(&b.write().await));
    throughout(Duration::from_secs(1), "no candidate leads", || {
        !a.candidate().is_leader() && !b.candidate().is_leader()
    })
    .await;
    world.come_back().await;
    until("one leads and both know it", async || {
        a.candidate().is_leader() != b.candidate().is_leader()
            && a.candidate().holder() == b.candidate().holder()
    })
    .await;
    assert_ne!(a.candidate().term(), Some(term));
    let verdict = judged(world, &["candidate-0", "candidate-1"]).await;
    assert_eq!(verdict.terms.len(), 2, "{:?}", verdict.terms);
    let renewals = lease_writes(world, "candidate-0").await;
    let renewed =
        renewals.iter().map(|renewal| renewal.received.at).filter(|at| *at < gone).max().expect("one");
    // The deadline counts from when the renewal was sent, before the server received it.
    let deadline = renewed + timing().renew_deadline();
    assert_safety!(last_open < deadline, "open {:?} after the deadline", last_open - deadline);
    assert!(closed >= due, "closed {:?} early", due - closed);
}

/// The server refuses connections for a while, and watches end. Whether the term ends depends on how long that takes.
pub async fn candidates_reconnect_after_server_restart(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let _writers = [a.writing(), b.writing()];
    a.renews(1).await;
    world.restart().await;
    let left = || [&a, &b].map(|candidate| candidate.candidate().leadership().time_left());
    let (mut before, mut renewed) = (left(), [false; 2]);
    until("one has renewed and both know it", async || {
        let now = left();
        for place in 0..2 {
            renewed[place] |= now[place] > before[place];
        }
        before = now;
        let leads = [&a, &b].map(|candidate| candidate.candidate().is_leader());
        leads[0] != leads[1]
            && (renewed[0] && leads[0] || renewed[1] && leads[1])
            && a.candidate().holder() == b.candidate().holder()
    })
    .await;
    let (leader, follower) = if a.candidate().is_leader() { (a, b) } else { (b, a) };
    leader.renews(2).await;
    leader.write().await.expect("the leader writes");
    leader.running.stop().await;
    follower.elected().await;
    follower.write().await.expect("the leader writes");
    let verdict = judged(world, &["candidate-0", "candidate-1"]).await;
    assert_eq!(verdict.successions().last().map(|last| last.kind), Some(SuccessionKind::Graceful));
}
