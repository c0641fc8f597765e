//! Holders whose container starts again.

use super::{
    LOOK,
    node::{Node, end_after_renewal, ended, running},
    replicas::{leader_and_follower, pod_requests, replica},
};
use crate::{
    candidate::{Contender, prepare},
    real::Real,
    support::{judged, throughout, until},
};
use http::Method;
use serde_json::json;

/// The container starts again while the kubelet reports its end. Either replica may lead, but never both.
pub async fn s6_restarted_holder_and_follower_never_write_at_once() {
    let (world, users) = (Real::shared().await, ["candidate-6", "candidate-7"]);
    prepare(&world).await;
    let node = Node::of(&world);
    let (mut a, b) = leader_and_follower(&world, &node, users).await;
    let uid = node.send(Method::GET, &format!("/{}", users[0]), "application/json", &json!({})).await;
    let uid = uid["metadata"]["uid"].as_str().expect("a uid");
    let _writing = b.writing();
    for round in 0..5 {
        let Contender { running: election, line, work, client, .. } = a;
        drop((election, client));
        line.reset();
        work.reset();
        let end = end_after_renewal(&world).await;
        let restarts = async { replica(&world, users[0], uid).await };
        let (ended, running) = (ended(end), running());
        (a, ()) = tokio::join!(restarts, node.report(users[0], [&ended, &running]));
        let _writing = a.writing();
        let leads = async || a.candidate().is_leader() || b.candidate().is_leader();
        until("one of them leads", leads).await;
        throughout(LOOK, "SAFETY: never both", || !(a.candidate().is_leader() && b.candidate().is_leader()))
            .await;
        assert!(leads().await, "round {round}");
        if b.candidate().is_leader() {
            break;
        }
        node.report(users[0], [&running, &running]).await;
    }
    drop(a);
    judged(&world, &users).await;
}

/// The restarted process has taken its lease back, and then the status from before arrives.
pub async fn s6_restarted_holder_that_renewed_is_not_succeeded() {
    let (world, users) = (Real::shared().await, ["candidate-8", "candidate-9"]);
    let node = Node::of(&world);
    let uid = node.create(users[0]).await;
    let first = replica(&world, users[0], &uid).await;
    first.elected().await;
    drop(first.running);
    let end = end_after_renewal(&world).await;
    let second = replica(&world, users[0], &uid).await;
    second.elected().await;
    let b = replica(&world, users[1], &node.create(users[1]).await).await;
    until("it watches the pod", async || !pod_requests(&world, users[1], "watch").await.is_empty()).await;
    node.report(users[0], [&ended(end), &running()]).await;
    throughout(LOOK, "it follows", || b.candidate().holder().as_deref() == Some(users[0])).await;
    assert!(second.candidate().is_leader());
}
