//! When a candidate takes the lease, and what it writes.

use crate::{
    candidate::{Contender, builder, builder_for, following, leading, patient, start, timing},
    outsider::{Outsider, micro_time},
    support::{judged, lease_writes, no_swap_is_lost_twice, throughout, until},
    world::World,
};
use futures_util::future::join_all;
use jiff::SignedDuration;
use kube_leader_gate::testing::SuccessionKind;
use serde_json::{Value, json};
use std::time::Duration;
use test_support::assert_safety;

pub async fn first_candidate_creates_the_lease(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let term = a.elected().await;
    let lease = Outsider::of(world).get().await.expect("the lease");
    assert_eq!(lease["metadata"]["uid"], term.lease_uid());
    assert_eq!(term.transitions(), 0);
    let spec = &lease["spec"];
    assert_eq!(spec["holderIdentity"], "candidate-0");
    assert_eq!(spec["leaseDurationSeconds"], timing().lease_duration().as_secs());
    assert_eq!(spec["leaseTransitions"], 0);
    for field in ["acquireTime", "renewTime"] {
        let time = spec[field].as_str().expect("a time");
        assert_eq!(time.len(), "2026-01-02T03:04:05.678901Z".len(), "{time}");
    }
    a.renews(2).await;
    let log = lease_writes(world, "candidate-0").await;
    assert_eq!(log[0].verb, "create");
    assert!(log[1..].iter().all(|write| write.verb == "update"));
    let written: Vec<_> = log.iter().map(|write| write.lease.as_ref().expect("a lease")).collect();
    assert_eq!(written[0].acquire_time, written[0].renew_time);
    for renewal in &written[1..] {
        assert_eq!(renewal.acquire_time, written[0].acquire_time);
        assert_eq!(renewal.lease_transitions, Some(0));
        assert!(renewal.renew_time > written[0].renew_time);
    }
}

/// Candidates that repeat no call because its answer is late.
async fn crowd(world: &impl World, names: &[String]) -> Vec<Contender> {
    let candidate = |name| start(world, name, builder(world, name).timing(patient()));
    join_all(names.iter().map(|name| candidate(name.as_str()))).await
}

pub async fn only_one_of_many_candidates_creates_lease(world: &impl World) {
    let names: Vec<String> = (0..8).map(|number| format!("candidate-{number}")).collect();
    let all = crowd(world, &names).await;
    until("all know the holder", async || {
        all.iter().all(|candidate| candidate.candidate().holder().is_some())
    })
    .await;
    let holder = Outsider::of(world).holder().await;
    for (name, candidate) in names.iter().zip(&all) {
        assert_eq!(candidate.candidate().holder().as_deref(), Some(holder.as_str()));
        assert_eq!(candidate.candidate().is_leader(), *name == holder, "{name}");
    }
    let creations: Vec<u16> = (world.writes().await.iter())
        .filter(|write| write.resource == "leases" && write.verb == "create")
        .map(|write| write.status)
        .collect();
    assert_eq!(creations.iter().filter(|status| **status == 201).count(), 1, "{creations:?}");
    assert!(creations.iter().all(|status| [201, 409].contains(status)), "{creations:?}");
    assert!(creations.len() <= all.len(), "{creations:?}");
}

pub async fn free_lease_is_acquired(world: &impl World) {
    let free = [
        ("no-spec", Value::Null, 1),
        ("empty-spec", json!({}), 1),
        ("no-holder", json!({ "holderIdentity": null, "leaseTransitions": 4 }), 5),
        ("empty-holder", json!({ "holderIdentity": "", "leaseDurationSeconds": 3600 }), 1),
    ];
    join_all(free.map(async |(name, spec, transitions)| {
        let outsider = Outsider::at(world, name);
        let fields = if spec.is_null() { json!({}) } else { json!({ "spec": spec }) };
        let before = outsider.create(fields).await;
        let a = start(world, "candidate-0", builder_for(world, "candidate-0", name)).await;
        let term = a.elected().await;
        assert_eq!(before["metadata"]["uid"], term.lease_uid(), "{name}");
        assert_eq!(term.transitions(), transitions, "{name}");
        assert_eq!(outsider.holder().await, "candidate-0", "{name}");
    }))
    .await;
}

/// All candidates may try to take an expired lease at the same instant. The swap admits one of them, and no other one
/// tries twice with what it has seen.
pub async fn s6_only_one_of_many_takes_expired_lease(world: &impl World) {
    Outsider::of(world).create_held("dead", 1, &micro_time(SignedDuration::ZERO)).await;
    let names: Vec<String> = (0..6).map(|number| format!("candidate-{number}")).collect();
    let all = crowd(world, &names).await;
    let leaders = || all.iter().filter(|candidate| candidate.candidate().is_leader()).count();
    until("one candidate leads", async || leaders() > 0).await;
    throughout(Duration::from_secs(1), "SAFETY: at most one candidate leads", || leaders() <= 1).await;
    let log = world.writes().await;
    let taken = log.iter().filter(|write| {
        write.took_effect() && write.lease.as_ref().is_some_and(|lease| lease.lease_transitions == Some(4))
    });
    let takers: Vec<_> = taken.map(|write| write.user.as_str()).collect();
    assert_safety!(takers.iter().all(|taker| *taker == takers[0]), "taken twice: {takers:?}");
    assert!(!takers.is_empty());
    no_swap_is_lost_twice(world).await;
}

/// A candidate in the pod with this uid.
async fn in_pod(world: &impl World, uid: &str) -> Contender {
    start(world, "candidate-0", builder(world, "candidate-0").pod_uid(uid).apart()).await
}

/// A container that has led for long restarts, and takes its own lease back at once. Its earlier process, if it still runs,
/// notices.
pub async fn s6_restarted_container_retakes_its_own_lease(world: &impl World) {
    let first = in_pod(world, "a-1").await;
    let before = first.elected().await;
    let other = following(world, "candidate-1").await;
    first.line.hold();
    let long_ago = micro_time(SignedDuration::from_hours(-1));
    Outsider::of(world).patch(json!({ "spec": { "acquireTime": long_ago } })).await;
    let second = in_pod(world, "a-1").await;
    let after = second.elected().await;
    assert_eq!(after.lease_uid(), before.lease_uid());
    assert_eq!(after.transitions(), before.transitions() + 1);
    first.line.mend();
    until("the first life has noticed", async || !first.candidate().is_leader()).await;
    // Two live processes with one identity do not take the lease from each other for ever.
    throughout(timing().lease_duration() + Duration::from_secs(1), "the second leads", || {
        second.candidate().is_leader() && !first.candidate().is_leader() && !other.candidate().is_leader()
    })
    .await;
    let verdict = judged(world, &["candidate-0", "candidate-1"]).await;
    let [succession] = &verdict.successions()[..] else { panic!("{:?}", verdict.terms) };
    assert_eq!(succession.kind, SuccessionKind::Theft, "before the lease had run out");
}

/// A pod of a `StatefulSet` is deleted by force while its node is cut off. Its successor has the same name.
pub async fn s6_pod_of_the_same_name_waits_for_its_namesake(world: &impl World) {
    let first = in_pod(world, "a-1").await;
    first.elected().await;
    let _writing = first.writing();
    first.line.hold();
    let second = in_pod(world, "b-2").await;
    let _writing_too = second.writing();
    second.elected().await;
    assert!(!first.candidate().is_leader());
    first.line.mend();
    let verdict = judged(world, &["candidate-0"]).await;
    let [succession] = &verdict.successions()[..] else { panic!("{:?}", verdict.terms) };
    assert_eq!(succession.kind, SuccessionKind::Takeover);
}
