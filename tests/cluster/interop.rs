//! client-go's elector and a candidate on one Lease: each takes over from the other, after a stop and after a crash.

use crate::{
    candidate::{Contender, builder, prepare, start},
    go_candidate::{GoCandidate, timing},
    outsider::Outsider,
    real::Real,
    support::{judged, taken_over, throughout, until},
    world::World,
};
use kube_leader_gate::testing::{SuccessionKind, Verdict};
use test_support::assert_safety;

async fn following(world: &impl World, user: &str) -> Contender {
    let candidate = start(world, user, builder(world, user).timing(timing())).await;
    until("the candidate knows the holder", async || candidate.candidate().holder().is_some()).await;
    candidate
}

const CANDIDATES: [&str; 3] = ["candidate-0", "candidate-1", "candidate-2"];

/// Each of the three has held the lease once and has written. client-go counts a change of holder once, also after a
/// release.
async fn one_after_the_other(world: &impl World) -> Verdict {
    let verdict = judged(world, &CANDIDATES).await;
    let terms: Vec<_> = verdict.terms.iter().map(|term| (&*term.holder, term.transitions)).collect();
    assert_eq!(terms, [(CANDIDATES[0], 0), (CANDIDATES[1], 1), (CANDIDATES[2], 2)]);
    assert!(CANDIDATES.iter().all(|user| verdict.admitted[*user] > 0), "{:?}", verdict.admitted);
    verdict
}

fn kinds(verdict: &Verdict) -> Vec<SuccessionKind> {
    verdict.successions().into_iter().map(|it| it.kind).collect()
}

pub async fn client_go_and_candidate_hand_over_both_ways() {
    let world = Real::shared().await;
    prepare(&world).await;
    let mut first = GoCandidate::start(&world, CANDIDATES[0]);
    first.leads(&world, CANDIDATES[0]).await;
    let a = following(&world, CANDIDATES[1]).await;
    assert_eq!(a.candidate().holder().as_deref(), Some(CANDIDATES[0]));
    let _writers = [a.writing(), a.writing(), a.writing()];
    throughout(timing().lease_duration(), "client-go renews", || !a.candidate().is_leader()).await;
    first.stop().await;
    a.elected().await;

    let mut last = GoCandidate::start(&world, CANDIDATES[2]);
    last.observes(CANDIDATES[1]).await;
    throughout(timing().lease_duration(), "client-go sees it renew", || a.candidate().is_leader()).await;
    a.running.stop().await;
    last.leads(&world, CANDIDATES[2]).await;
    assert_eq!(Outsider::of(&world).holder().await, CANDIDATES[2]);
    last.stop().await;
    assert_eq!(Outsider::of(&world).holder().await, "");

    let verdict = one_after_the_other(&world).await;
    assert_safety!(verdict.strays.is_empty(), "writes by a non-holder: {:?}", verdict.strays);
    assert_eq!(kinds(&verdict), [SuccessionKind::Graceful; 2]);
}

pub async fn client_go_and_candidate_take_over_after_crashes() {
    let world = Real::shared().await;
    prepare(&world).await;
    let mut first = GoCandidate::start(&world, CANDIDATES[0]);
    first.leads(&world, CANDIDATES[0]).await;
    let a = following(&world, CANDIDATES[1]).await;
    let _writer = a.writing();
    first.process.kill();
    a.elected().await;
    let mut last = GoCandidate::start(&world, CANDIDATES[2]);
    last.observes(CANDIDATES[1]).await;
    a.renews(2).await;
    drop(a);
    last.leads(&world, CANDIDATES[2]).await;
    last.stop().await;

    assert_eq!(kinds(&one_after_the_other(&world).await), [SuccessionKind::Takeover; 2]);
    taken_over(&world, CANDIDATES[0]).await;
    taken_over(&world, CANDIDATES[1]).await;
}
