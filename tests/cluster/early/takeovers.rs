//! Ends that are proven: the successor leads although the lease has far to run.

use super::{
    node::{Node, end_after_renewal, ended, running},
    replicas::{builder, leader_and_follower, pod_requests, replica},
};
use crate::{
    candidate::{Contender, prepare, start},
    outsider::Outsider,
    real::Real,
    support::{PATIENCE, judged, lease_writes, until, within},
    world::World,
};
use kube_leader_gate::testing::{SuccessionKind, WriteRecord};
use std::time::Duration;
use test_support::apiserver::{SlowWebhook, Stage};
use test_support::assert_safety;

/// With 137 s to run.
pub async fn ended_container_is_succeeded_at_once() {
    let (world, users) = (Real::shared().await, ["candidate-0", "candidate-1"]);
    prepare(&world).await;
    let node = Node::of(&world);
    let (a, b) = leader_and_follower(&world, &node, users).await;
    let _writers = (a.writing(), b.writing());
    until("a writes", async || world.writes().await.iter().any(|it| it.resource == "configmaps")).await;
    let Contender { running: election, line, work, .. } = a;
    // The process ends, and the kernel closes its connections.
    drop(election);
    line.reset();
    work.reset();
    let end = end_after_renewal(&world).await;
    let lease_gets = world.reads(users[1], "get").await;
    node.report(users[0], [&ended(end), &running()]).await;
    let holder = async || Outsider::of(&world).holder().await == users[1];
    until("b has taken the lease", holder).await;
    b.elected().await;
    until("b writes", async || {
        world.writes().await.iter().any(|it| it.resource == "configmaps" && it.user == users[1])
    })
    .await;
    let verdict = judged(&world, &users).await;
    // By the log alone: b takes a lease that has far to run.
    let kinds: Vec<_> = verdict.successions().into_iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [SuccessionKind::Theft]);
    // What the guide says that it costs.
    assert_eq!(pod_requests(&world, users[1], "watch").await.len(), 1);
    assert_eq!(pod_requests(&world, users[1], "get").await.len(), 1);
    assert_eq!(pod_requests(&world, users[0], "watch").await.len(), 0);
    assert_eq!(world.reads(users[1], "get").await, lease_gets, "the claim swaps what the watch has shown");
}

/// The server still works on a write when its sender ends. The kernel closes the sender's connections, and the server
/// gives the write up. Nothing else bounds this write.
pub async fn write_of_ended_process_never_lands_after_takeover() {
    // A webhook may take 30 s. The takeover takes the settle time and some milliseconds.
    const TAKES: Duration = Duration::from_secs(25);
    let (world, users) = (Real::shared().await, ["candidate-10", "candidate-11"]);
    prepare(&world).await;
    let webhook = SlowWebhook::register(world.cluster, world.namespace(), Stage::Validating, TAKES).await;
    let node = Node::of(&world);
    let uid = node.create(users[0]).await;
    let a = start(&world, users[0], builder(&world, users[0], &uid).request_deadline(false)).await;
    a.elected().await;
    let b = replica(&world, users[1], &node.create(users[1]).await).await;
    until("it watches the pod", async || !pod_requests(&world, users[1], "watch").await.is_empty()).await;
    let end = end_after_renewal(&world).await;
    let client = a.client.clone();
    let writing = tokio::spawn(async move { crate::candidate::write(&client).await });
    until("the webhook is asked", async || webhook.asked() == 1).await;
    a.work.reset();
    drop(a.running);
    within(PATIENCE, "the writer learns of it", writing).await.expect("no panic").unwrap_err();
    node.report(users[0], [&ended(end), &running()]).await;
    b.elected().await;
    let of_a = |writes: Vec<WriteRecord>| {
        writes.into_iter().find(|it| it.user == users[0] && it.resource == "configmaps")
    };
    until("the server has ended the write", async || of_a(world.writes().await).is_some()).await;
    let write = of_a(world.writes().await).expect("it was logged");
    assert_safety!(!write.took_effect(), "a write of the former leader landed: {write:?}");
    let taken = lease_writes(&world, users[1]).await[0].completed.expect("a takeover").at;
    assert!(taken < write.received.at + TAKES, "the webhook had not answered yet");
}
