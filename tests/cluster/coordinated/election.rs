//! The coordinator chooses, and the candidates obey.

use super::{coordination, is_listed, joins, judged, lease_candidate, send, with, work, writes};
use crate::{
    candidate::{prepare, start, timing},
    outsider::Outsider,
    real::Real,
    support::{lease_writes, release, until},
    world::World,
};
use http::Method;
use kube_leader_gate::{election::LeaseEnd, testing::LogTime};
use serde_json::json;
use test_support::assert_safety;

const USERS: [&str; 3] = ["candidate-0", "candidate-1", "candidate-2"];

pub async fn lower_version_joins_and_leader_steps_down() {
    let world = Real::coordinated().await;
    prepare(&world).await;
    let new = joins(&world, USERS[0], "1.5.0", timing()).await;
    let _writers = [new.writing(), new.writing(), new.writing()];
    let first_term = new.elected().await;
    // The coordinator pings a candidate whose last renewal is 5 s old.
    new.renews(14).await;
    writes(&world, USERS[0]).await;
    let old = joins(&world, USERS[1], "1.4.0", timing()).await;
    let _more_writers = [old.writing(), old.writing(), old.writing()];
    let term = old.elected().await;
    assert!(!new.candidate().is_leader());
    assert!(term.fencing_token() > first_term.fencing_token(), "a later term has a larger token");
    old.renews(2).await;
    writes(&world, USERS[1]).await;
    assert!(old.candidate().is_leader() && !new.candidate().can_write(), "the leader stays");

    // Rule S4: the admitted writes had ended when the lease was released.
    let verdict = judged(&world, &USERS).await;
    assert_safety!(verdict.strays.is_empty(), "writes by a non-holder: {:?}", verdict.strays);
    let released = release(&world, USERS[0]).await.expect("a release").received;
    let ended: Vec<LogTime> = work(&world)
        .await
        .iter()
        .filter(|write| write.user == USERS[0] && write.resource == "configmaps")
        .filter_map(|write| write.completed)
        .collect();
    assert_safety!(ended.iter().all(|at| *at < released), "a write ended after the release");
    // The gate opened after the candidate's own write, in a term of its own.
    let acquired = lease_writes(&world, USERS[1]).await[0].lease.clone().expect("a lease");
    assert_eq!(acquired.holder_identity, USERS[1]);
    assert_eq!(u64::try_from(acquired.lease_transitions.expect("a count")).unwrap(), term.transitions());

    until("the last ping is answered", async || {
        let spec = lease_candidate(&world, USERS[0]).await.expect("a LeaseCandidate")["spec"].take();
        spec["renewTime"].as_str().expect("a renewal") > spec["pingTime"].as_str().expect("a ping")
    })
    .await;
    let pings: Vec<_> = world
        .requests()
        .await
        .into_iter()
        .filter(|it| it.object_ref.resource == "leasecandidates" && it.verb == "update")
        .filter(|it| it.response_status.code == 200)
        .map(|it| it.user.username)
        .collect();
    assert!(pings.iter().any(|user| user == "system:apiserver"), "{pings:?}");
    assert!(pings.iter().any(|user| user == USERS[0]), "{pings:?}");
    let spec = Outsider::of(&world).spec().await;
    assert_eq!(spec["strategy"], "OldestEmulationVersion", "it survives the candidates' writes");
}

pub async fn oldest_emulation_version_is_elected() {
    let world = Real::coordinated().await;
    let versions = [("1.5.0", "1.5.0"), ("1.6.0", "1.4.0"), ("1.4.5", "1.4.5")];
    let mut candidates = Vec::new();
    for (user, (binary, emulated)) in USERS.into_iter().zip(versions) {
        let coordination = coordination(&world, user, binary).emulating(emulated).unwrap();
        candidates.push(start(&world, user, with(&world, user, coordination)).await);
    }
    let chosen = &candidates[1];
    chosen.elected().await;
    chosen.renews(3).await;
    assert!(chosen.candidate().is_leader());
    for other in [&candidates[0], &candidates[2]] {
        until("it knows the holder", async || other.candidate().holder().as_deref() == Some(USERS[1])).await;
        assert!(!other.candidate().can_write());
    }
    judged(&world, &USERS).await;
}

pub async fn deleted_lease_candidate_comes_back() {
    let world = Real::coordinated().await;
    let a = joins(&world, USERS[0], "1.5.0", timing()).await;
    a.elected().await;
    let uid = lease_candidate(&world, USERS[0]).await.expect("a LeaseCandidate")["metadata"]["uid"].take();
    send(&world, Method::DELETE, &format!("/{}", USERS[0])).await.expect("deleted");
    until("it comes back", async || {
        lease_candidate(&world, USERS[0]).await.is_some_and(|now| now["metadata"]["uid"] != uid)
    })
    .await;
    a.renews(1).await;
    assert!(a.candidate().is_leader(), "and the term goes on");
}

pub async fn crashed_leader_is_succeeded() {
    let world = Real::coordinated().await;
    prepare(&world).await;
    let a = joins(&world, USERS[0], "1.4.0", timing()).await;
    let _writer = a.writing();
    a.elected().await;
    a.renews(1).await;
    let b = joins(&world, USERS[1], "1.5.0", timing()).await;
    is_listed(&world, USERS[1]).await;
    // Its LeaseCandidate stays, and answers no ping.
    drop(a);
    b.elected().await;
    b.write().await.expect("it may write");
    assert!(release(&world, USERS[0]).await.is_none());
    judged(&world, &USERS).await;
}

/// Otherwise the coordinator might name it once more.
pub async fn stopped_leader_withdraws_before_its_release() {
    let world = Real::coordinated().await;
    let a = joins(&world, USERS[0], "1.4.0", timing()).await;
    a.elected().await;
    let b = joins(&world, USERS[1], "1.5.0", timing()).await;
    is_listed(&world, USERS[1]).await;
    assert_eq!(a.running.stop().await, LeaseEnd::Released);
    assert!(lease_candidate(&world, USERS[0]).await.is_none());
    let log = world.writes().await;
    let withdrawn = log.iter().find(|it| it.resource == "leasecandidates" && it.verb == "delete");
    let withdrawn = withdrawn.and_then(|it| it.completed).expect("a deletion");
    assert!(withdrawn < release(&world, USERS[0]).await.expect("a release").received);
    b.elected().await;
    let terms = judged(&world, &USERS).await.terms;
    let named_again = terms.iter().skip_while(|it| it.ended.is_none_or(|(at, _)| at < withdrawn)).skip(1);
    assert!(named_again.into_iter().all(|term| term.holder == USERS[1]), "{terms:#?}");
    b.running.stop().await;
    assert!(lease_candidate(&world, USERS[1]).await.is_none());
}

/// The coordinator of the API server creates the lease, and another one names the holder.
pub async fn strategy_of_another_coordinator_is_obeyed() {
    let world = Real::coordinated().await;
    let mut candidates = Vec::new();
    for user in &USERS[..2] {
        let coordination = coordination(&world, user, "1.5.0").strategy("example.com/mine").unwrap();
        candidates.push(start(&world, user, with(&world, user, coordination)).await);
    }
    let lease = Outsider::of(&world);
    until("the lease is there", async || lease.get().await.is_some()).await;
    assert_eq!(lease.holder().await, "");
    for (user, candidate) in USERS.into_iter().zip(&candidates) {
        if lease.holder().await.is_empty() {
            lease.patch(json!({ "spec": { "holderIdentity": user, "leaseDurationSeconds": 60 } })).await;
        } else {
            lease.patch(json!({ "spec": { "preferredHolder": user } })).await;
            until("the holder gives it up", async || lease.holder().await.is_empty()).await;
            let names = json!({ "holderIdentity": user, "preferredHolder": null, "acquireTime": null });
            lease.patch(json!({ "spec": names })).await;
        }
        candidate.elected().await;
    }
    assert!(!candidates[0].candidate().is_leader());
    assert_eq!(lease.spec().await["strategy"], "example.com/mine");
}
