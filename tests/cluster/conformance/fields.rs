//! Other fields of the lease, and which of them a candidate believes.

use crate::{
    candidate::{builder_for, contending, leading, start, timing},
    outsider::{Outsider, micro_time},
    support::until,
    world::World,
};
use futures_util::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::time::Duration;
use test_support::assert_safety;
use tokio::time::Instant;

/// client-go #1331, kubernetes #131632: all other fields of the object stay.
pub async fn s12_foreign_fields_survive_every_update(world: &impl World) {
    let outsider = Outsider::of(world);
    let metadata = json!({
        "labels": { "team": "a" },
        "annotations": { "team": "a" },
        "finalizers": ["example.com/keep"],
        "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1-2-3" }],
    });
    // A server keeps those of these fields that its version and feature gates know.
    let spec = json!({ "holderIdentity": "", "leaseTransitions": 2, "strategy": "OldestEmulationVersion",
                       "preferredHolder": "c", "aFieldOfTheFuture": { "deep": [1, 2, 3] } });
    let before = outsider.create(json!({ "metadata": metadata, "spec": spec })).await;
    let a = leading(world, "candidate-0").await;
    a.renews(2).await;
    outsider.patch(json!({ "metadata": { "labels": { "late": "b" } } })).await;
    a.renews(2).await;
    a.running.stop().await;
    let mut after = outsider.get().await.expect("the lease");
    for own in ["kube-leader-gate/claim", "kube-leader-gate/waits-for"] {
        after["metadata"]["annotations"].as_object_mut().expect("annotations").remove(own).expect("its own");
    }
    assert_eq!(after["metadata"]["labels"], json!({ "team": "a", "late": "b" }));
    for field in ["annotations", "finalizers", "ownerReferences", "uid", "creationTimestamp"] {
        assert_eq!(after["metadata"][field], before["metadata"][field], "{field}");
    }
    assert_eq!(foreign(&after["spec"]), foreign(&before["spec"]));
    assert_eq!(after["spec"]["leaseTransitions"], 3);
}

/// The spec without the fields that an election writes.
fn foreign(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let fields = spec.as_object_mut().expect("a spec");
    for own in ["holderIdentity", "leaseDurationSeconds", "leaseTransitions", "acquireTime", "renewTime"] {
        fields.remove(own);
    }
    spec
}

/// client-go #448, kubernetes #120824: times in the lease are for people. They may be wrong. The *recorded* duration
/// counts, from when the candidate first saw it.
pub async fn s6_wall_clock_times_are_ignored(world: &impl World) {
    let hour = SignedDuration::from_hours(1);
    let cases = [
        ("behind", micro_time(-hour), Some(5)),
        ("ahead", micro_time(hour), Some(5)),
        ("long-ago", "1999-01-01T00:00:00.000000Z".into(), Some(1)),
        ("far-away", "2199-01-01T00:00:00.000000Z".into(), Some(1)),
        // Without a duration, this candidate's own counts.
        ("no-duration", micro_time(hour), None),
    ];
    join_all(cases.map(async |(name, renewed, recorded)| {
        let outsider = Outsider::at(world, name);
        let spec = json!({ "holderIdentity": "x", "leaseDurationSeconds": recorded, "renewTime": renewed });
        outsider.create(json!({ "spec": spec })).await;
        let duration = recorded.map_or(timing().lease_duration(), Duration::from_secs);
        let before = Instant::now();
        let a = start(world, "candidate-0", builder_for(world, "candidate-0", name)).await;
        until("the candidate knows x", async || a.candidate().holder().as_deref() == Some("x")).await;
        let seen = Instant::now();
        a.elected().await;
        assert_safety!(before.elapsed() >= duration, "{name}: taken after {:?}", before.elapsed());
        assert!(seen.elapsed() < duration + world.slack(), "{name}: after {:?}", seen.elapsed());
    }))
    .await;
}

/// A live holder whose clock is wrong stays the holder.
pub async fn s6_holder_with_slow_clock_keeps_the_lease(world: &impl World) {
    let outsider = Outsider::of(world);
    let behind = || micro_time(SignedDuration::from_hours(-1));
    let lease = timing().lease_duration();
    outsider.create_held("x", lease.as_secs(), &behind()).await;
    let a = contending(world, "candidate-0").await;
    let began = Instant::now();
    while began.elapsed() < lease + Duration::from_secs(1) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        outsider.patch(json!({ "spec": { "renewTime": behind() } })).await;
        assert_eq!(outsider.holder().await, "x");
        assert!(!a.candidate().is_leader());
    }
    a.elected().await;
}

/// An outsider that changes the lease's labels all the time does not keep a dead holder alive.
pub async fn s6_label_change_is_not_a_renewal(world: &impl World) {
    let outsider = Outsider::of(world);
    outsider.create_held("dead", 2, &micro_time(SignedDuration::ZERO)).await;
    let a = contending(world, "candidate-0").await;
    let touching = async {
        for touch in 0_u64.. {
            tokio::time::sleep(Duration::from_millis(100)).await;
            outsider.patch(json!({ "metadata": { "labels": { "touch": touch.to_string() } } })).await;
        }
    };
    tokio::select! {
        () = touching => {}
        _ = a.elected() => {}
    }
}
