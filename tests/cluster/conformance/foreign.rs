//! What other clients do to the lease while a candidate leads.

use crate::{
    candidate::{contending, following, leading, timing},
    outsider::Outsider,
    support::{is_not_leader, judged, lease_writes, until},
    world::World,
};
use kube_leader_gate::{leadership::Loss, testing::SuccessionKind};
use serde_json::json;
use std::time::Duration;
use test_support::assert_safety;
use tokio::time::Instant;

pub async fn s7_theft_closes_the_gate(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let _writers = [a.writing(), b.writing()];
    a.renews(1).await;
    let outsider = Outsider::of(world);
    let before = Instant::now();
    outsider.steal().await;
    let stolen = Instant::now();
    until("the gate closes", async || !a.candidate().is_leader()).await;
    assert!(stolen.elapsed() < world.slack(), "{:?} after the theft", stolen.elapsed());
    assert_eq!(a.candidate().leadership().state().lost, Some(Loss::Taken));
    assert!(is_not_leader(&a.write().await));
    until("all know the thief", async || {
        [&a, &b].iter().all(|candidate| candidate.candidate().holder().as_deref() == Some("outsider"))
    })
    .await;
    // A thief that does not renew is a dead holder.
    until("a candidate leads", async || a.candidate().is_leader() || b.candidate().is_leader()).await;
    assert_safety!(
        before.elapsed() >= timing().lease_duration(),
        "taken {:?} after the theft",
        before.elapsed()
    );
    let verdict = judged(world, &["candidate-0", "candidate-1"]).await;
    let [_, thief, successor] = &verdict.terms[..] else { panic!("{:?}", verdict.terms) };
    assert_eq!((thief.holder.as_str(), thief.transitions, successor.transitions), ("outsider", 7, 8));
}

pub async fn s8_deletion_closes_gate_until_new_term(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let first = a.elected().await;
    let _writer = a.writing();
    // The candidate's second term, so that a count of 0 shows a new lease.
    let outsider = Outsider::of(world);
    outsider.patch(json!({ "spec": { "holderIdentity": "" } })).await;
    until("it takes it again", async || a.candidate().term().is_some_and(|term| term.transitions() == 1))
        .await;
    outsider.delete().await;
    until("it leads in a new lease", async || {
        a.candidate().term().is_some_and(|term| term.lease_uid() != first.lease_uid())
    })
    .await;
    let spec = outsider.spec().await;
    assert_eq!(spec["leaseTransitions"], 0);
    assert_eq!(a.candidate().term().map(|term| term.transitions()), Some(0));
    a.write().await.expect("the candidate leads");
    let verdict = judged(world, &["candidate-0"]).await;
    assert_eq!(verdict.successions().last().map(|last| last.kind), Some(SuccessionKind::AfterDeletion));
}

/// A holder that has not learned of the deletion may still write.
pub async fn s8_follower_waits_for_holder_of_deleted_lease(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let _writers = [a.writing(), b.writing()];
    a.renews(1).await;
    a.line.hold();
    Outsider::of(world).delete().await;
    until("b knows of it", async || b.candidate().holder().is_none()).await;
    b.elected().await;
    assert_safety!(!a.candidate().can_write(), "two gates are open");
    a.line.mend();
    until("a follows b", async || a.candidate().holder().as_deref() == Some("candidate-1")).await;
    let verdict = judged(world, &["candidate-0", "candidate-1"]).await;
    let users: Vec<_> = verdict.terms.iter().map(|term| term.user.as_str()).collect();
    assert_eq!(users, ["candidate-0", "candidate-1"]);
}

pub async fn label_changes_do_not_end_term(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let term = a.elected().await;
    let outsider = Outsider::of(world);
    let touching = async {
        for touch in 0..40 {
            outsider.patch(json!({ "metadata": { "labels": { "touch": touch.to_string() } } })).await;
            tokio::time::sleep(Duration::from_millis(60)).await;
            assert!(a.candidate().can_write() && !b.candidate().is_leader(), "touch {touch}");
        }
    };
    tokio::join!(touching, a.renews(4));
    assert_eq!(a.candidate().term(), Some(term));
    assert_eq!(outsider.get().await.expect("the lease")["metadata"]["labels"]["touch"], "39");
    assert!(lease_writes(world, "candidate-1").await.is_empty());
}

/// The other candidates use the duration in the lease, so the holder must not go on.
pub async fn shortened_lease_duration_ends_the_term(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let outsider = Outsider::of(world);
    let first = a.elected().await;
    a.renews(1).await;
    outsider.patch(json!({ "spec": { "leaseDurationSeconds": 1 } })).await;
    until("it leads in a new term", async || {
        a.candidate().term().is_some_and(|term| term.transitions() == first.transitions() + 1)
    })
    .await;
    assert_eq!(outsider.spec().await["leaseDurationSeconds"], timing().lease_duration().as_secs());
    assert_eq!(a.candidate().leadership().state().lost, Some(Loss::Taken));
}

/// linkerd2 #15506, kubert #134: electors that died silently, or ran only once.
pub async fn candidate_leads_again_after_every_outage(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let outsider = Outsider::of(world);
    for round in 0..10 {
        let before = a.elected().await;
        outsider.delete().await;
        until("a new term", async || a.candidate().term().is_some_and(|term| term != before)).await;
        a.write().await.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    a.candidate().check(Duration::ZERO).expect("healthy");
    let b = contending(world, "candidate-1").await;
    a.running.stop().await;
    b.elected().await;
}
