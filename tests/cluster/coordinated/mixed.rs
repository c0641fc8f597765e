//! client-go's candidates and this crate's on one coordinated lease; and candidates that know nothing of a coordinator.

use super::{is_listed, joins, work, writes};
use crate::{
    candidate::{builder, prepare, start},
    go_candidate::{GoCandidate, timing},
    outsider::Outsider,
    real::Real,
    support::{release, until},
    world::World,
};
use kube_leader_gate::testing::Judge;
use test_support::assert_safety;

const USERS: [&str; 3] = ["candidate-0", "candidate-1", "candidate-2"];

/// Each version leads once, from the newest to the oldest.
pub async fn client_go_gives_way_and_takes_over() {
    let world = Real::coordinated().await;
    prepare(&world).await;
    let mut newest = GoCandidate::coordinated(&world, USERS[0], "1.6.0");
    newest.leads(&world, USERS[0]).await;
    let a = joins(&world, USERS[1], "1.5.0", timing()).await;
    let _writers = [a.writing(), a.writing(), a.writing()];
    a.elected().await;
    a.renews(2).await;
    writes(&world, USERS[1]).await;
    let mut oldest = GoCandidate::coordinated(&world, USERS[2], "1.4.0");
    oldest.leads(&world, USERS[2]).await;
    assert!(!a.candidate().is_leader());
    assert!(release(&world, USERS[1]).await.is_some(), "this crate's candidate released the lease");

    // After the stop of the oldest, this crate's candidate is the best one again.
    oldest.stop().await;
    a.elected().await;
    a.running.stop().await;
    newest.has_led(2).await;
    newest.stop().await;

    let verdict = Judge::new(world.namespace(), "operator", USERS).verdict(&work(&world).await);
    let of_gate: Vec<_> = verdict.strays.iter().filter(|stray| stray.user == USERS[1]).collect();
    assert_safety!(of_gate.is_empty(), "writes by a non-holder: {of_gate:#?}");
    assert!(USERS.iter().all(|user| verdict.admitted[*user] > 3), "{:?}", verdict.admitted);
}

/// It contends by itself and does not obey the coordinator. When it stops, the coordinator chooses.
pub async fn uncoordinated_candidate_is_followed_after_its_stop() {
    let world = Real::coordinated().await;
    prepare(&world).await;
    let before = start(&world, USERS[0], builder(&world, USERS[0]).timing(timing())).await;
    before.elected().await;
    let after = joins(&world, USERS[1], "1.0.0", timing()).await;
    is_listed(&world, USERS[1]).await;
    let lease = Outsider::of(&world);
    until("it is preferred", async || lease.spec().await["preferredHolder"] == USERS[1]).await;
    before.renews(3).await;
    assert!(before.candidate().can_write() && !after.candidate().is_leader());
    let client_go = GoCandidate::start(&world, USERS[2]);
    client_go.observes(USERS[0]).await;
    drop(client_go);
    before.running.stop().await;
    after.elected().await;
    assert_eq!(lease.holder().await, USERS[1]);
    super::judged(&world, &USERS).await;
}
