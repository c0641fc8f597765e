//! Candidates that stop answering.

use crate::{
    candidate::{Contender, following, leading, timing},
    outsider::Outsider,
    support::{is_not_leader, judged, taken_over, until},
    world::World,
};
use test_support::assert_safety;

pub async fn s6_successor_of_crashed_leader_leads_after_expiry(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let (b, c) = (following(world, "candidate-1").await, following(world, "candidate-2").await);
    let _writers = [a.writing(), b.writing(), c.writing()];
    a.renews(2).await;
    drop(a);
    until("another one leads", async || b.candidate().is_leader() || c.candidate().is_leader()).await;
    until("and writes", async || b.write().await.is_ok() || c.write().await.is_ok()).await;
    let verdict = judged(world, &CANDIDATES).await;
    assert_safety!(verdict.strays.is_empty(), "writes by a non-holder: {:?}", verdict.strays);
    let late = taken_over(world, "candidate-0").await;
    assert!(late < world.slack(), "{late:?} after its end");
    assert_eq!(verdict.terms.len(), 2);
    assert_eq!(verdict.terms[1].transitions, verdict.terms[0].transitions + 1);
}

const CANDIDATES: [&str; 3] = ["candidate-0", "candidate-1", "candidate-2"];

/// Rule S1: no message reaches the candidate, and its gate closes before the others take over.
pub async fn disconnected_leader_is_replaced_and_then_follows(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    // The workload's own line stays open: only the gate holds its writes back.
    let _writers = [a.writing(), b.writing()];
    a.write().await.expect("the leader writes");
    a.line.cut();
    closes_before_a_successor(&a, &b).await;
    a.line.mend();
    until("a follows b", async || a.candidate().holder().as_deref() == Some("candidate-1")).await;
    assert!(b.candidate().is_leader());
    let verdict = judged(world, &CANDIDATES).await;
    assert_safety!(verdict.strays.is_empty(), "writes by a non-holder: {:?}", verdict.strays);
    taken_over(world, "candidate-0").await;
}

/// The same when connections stay open but carry nothing: a silent partition.
pub async fn silent_connection_closes_the_gate(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let _writers = [a.writing(), b.writing()];
    a.write().await.expect("the leader writes");
    a.line.hold();
    closes_before_a_successor(&a, &b).await;
    // Requests that the line held back arrive late: renewals of a term that is over.
    a.line.mend();
    until("a follows b", async || a.candidate().holder().as_deref() == Some("candidate-1")).await;
    assert_eq!(Outsider::of(world).holder().await, "candidate-1");
    let verdict = judged(world, &CANDIDATES).await;
    assert_safety!(verdict.strays.is_empty(), "writes by a non-holder: {:?}", verdict.strays);
    assert_eq!(verdict.terms.len(), 2);
    taken_over(world, "candidate-0").await;
}

async fn closes_before_a_successor(a: &Contender, b: &Contender) {
    until("a's gate closes", async || {
        assert_safety!(!b.candidate().is_leader(), "b leads before a's gate has closed");
        !a.candidate().can_write()
    })
    .await;
    assert!(is_not_leader(&a.write().await));
    b.elected().await;
    b.write().await.expect("the leader writes");
}

/// Every open connection goes dead, as when a load balancer forgets them. New ones work.
pub async fn s9_renewal_after_timeout_uses_fresh_connection(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let term = a.elected().await;
    for _ in 0..3 {
        // Its connection is established: it has been used twice.
        a.renews(2).await;
        a.line.forget();
        // At least a retry period and a call timeout have passed.
        let low = timing().renew_deadline().saturating_sub(timing().retry_period() + timing().call_timeout());
        until("a renewal fails", async || a.candidate().leadership().time_left() < Some(low)).await;
        a.renews(1).await;
        assert_eq!(a.candidate().term(), Some(term.clone()), "and has led throughout");
    }
}
