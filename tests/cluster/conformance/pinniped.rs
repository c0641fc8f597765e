//! The integration scenario of the system that this crate follows: only the holder writes, whatever happens to the
//! lease.

use crate::{
    candidate::{Contender, contending, write},
    outsider::Outsider,
    support::{is_not_leader, until},
    world::World,
};
use futures_util::future::join_all;
use serde_json::json;

pub async fn only_the_holder_ever_writes(world: &impl World) {
    let names = ["candidate-0", "candidate-1", "candidate-2"];
    let mut all: Vec<Contender> = join_all(names.map(|name| contending(world, name))).await;
    let outsider = Outsider::of(world);
    led(&all, &outsider).await;
    only_the_holder_writes(&all).await;

    // An outsider takes the lease: no candidate can write until it has expired.
    let before = outsider.spec().await;
    outsider.patch(json!({ "spec": { "holderIdentity": "some-other-identity" } })).await;
    until("all gates close", async || all.iter().all(|candidate| !candidate.candidate().can_write())).await;
    no_candidate_writes(&all).await;
    led(&all, &outsider).await;
    only_the_holder_writes(&all).await;
    let after = outsider.spec().await;
    assert!(after["leaseTransitions"].as_u64() > before["leaseTransitions"].as_u64());
    assert!(after["acquireTime"].as_str() > before["acquireTime"].as_str());

    // The lease is deleted: a candidate makes a new one.
    outsider.delete().await;
    led(&all, &outsider).await;
    only_the_holder_writes(&all).await;
    assert_eq!(outsider.spec().await["leaseTransitions"], 0);

    // Leaders stop one after the other. None writes after its stop.
    while !all.is_empty() {
        led(&all, &outsider).await;
        only_the_holder_writes(&all).await;
        let leader = all.iter().position(|candidate| candidate.candidate().is_leader()).expect("a leader");
        let leader = all.remove(leader);
        leader.running.stop().await;
        assert!(is_not_leader(&write(&leader.client).await));
    }
    assert_eq!(outsider.holder().await, "");
}

/// One candidate leads, and all know it.
async fn led(all: &[Contender], outsider: &Outsider) {
    until("one candidate leads and all know it", async || {
        let holder = outsider.holder().await;
        let leads = |candidate: &Contender| {
            candidate.candidate().can_write() == (candidate.candidate().identity().as_str() == holder)
                && candidate.candidate().holder().as_deref() == Some(holder.as_str())
        };
        all.iter().all(leads) && all.iter().any(|candidate| candidate.candidate().is_leader())
    })
    .await;
}

/// All candidates read, one writes.
async fn only_the_holder_writes(all: &[Contender]) {
    for candidate in all {
        candidate.client.apiserver_version().await.expect("reads pass");
        let leads = candidate.candidate().is_leader();
        let result = candidate.write().await;
        if leads {
            result.expect("the holder writes");
        } else {
            assert!(is_not_leader(&result), "{:?}: {result:?}", candidate.candidate().identity());
        }
    }
}

async fn no_candidate_writes(all: &[Contender]) {
    for candidate in all {
        let result = candidate.write().await;
        assert!(is_not_leader(&result), "{:?}: {result:?}", candidate.candidate().identity());
    }
}
