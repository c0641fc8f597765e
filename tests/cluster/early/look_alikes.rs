//! What looks like the end of the holder's process and proves nothing.

use super::{
    LOOK,
    node::{Node, end_after_renewal, ended, renewed, running, terminated},
    replicas::{leader_and_follower, pod_requests},
};
use crate::{
    real::Real,
    support::{PATIENCE, throughout, within},
};
use jiff::{SignedDuration, Timestamp};
use kube_leader_gate::election::LeaseEnd;
use serde_json::json;

pub async fn s6_look_alikes_are_not_succeeded_early() {
    let (world, users) = (Real::shared().await, ["candidate-2", "candidate-3"]);
    let node = Node::of(&world);
    let (a, b) = leader_and_follower(&world, &node, users).await;
    drop(a.running);
    let end = end_after_renewal(&world).await;
    let earlier = Timestamp::from_second(renewed(&world).await.as_second()).expect("a time");
    let again = json!({ "now": { "running": {} }, "before": terminated(end) });
    let mut lost = ended(end);
    lost["now"]["terminated"]["reason"] = "ContainerStatusUnknown".into();
    let creating =
        json!({ "now": { "waiting": { "reason": "ContainerCreating" } }, "before": terminated(end) });
    let cases = [
        ("an end before the last renewal", [ended(earlier - SignedDuration::from_secs(1)), running()]),
        ("an end in the second of the renewal", [ended(earlier), running()]),
        ("the end of another container", [running(), ended(end)]),
        ("it has started again", [again, running()]),
        ("the kubelet has lost it", [lost, running()]),
        ("a wait in which a process may run", [creating, running()]),
    ];
    for (case, [manager, proxy]) in &cases {
        node.report(users[0], [manager, proxy]).await;
        throughout(LOOK, case, || b.candidate().holder().as_deref() == Some(users[0])).await;
    }
    node.report(users[0], [&running(), &running()]).await;
    node.patch(users[0], &json!({ "status": { "phase": "Failed" } })).await;
    throughout(LOOK, "a controller gives the pod up", || b.candidate().holder().as_deref() == Some(users[0]))
        .await;
    assert_eq!(pod_requests(&world, users[1], "get").await.len(), 0, "none of them is worth a look");
    // It would have noticed.
    node.report(users[0], [&ended(end), &running()]).await;
    b.elected().await;
}

pub async fn s6_pod_that_is_gone_is_not_succeeded_early() {
    let (world, users) = (Real::shared().await, ["candidate-4", "candidate-5"]);
    let node = Node::of(&world);
    let (a, b) = leader_and_follower(&world, &node, users).await;
    let follows = || b.candidate().holder().as_deref() == Some(users[0]);
    node.forget(users[0]).await;
    throughout(LOOK, "the pod was deleted by force", follows).await;
    assert!(a.candidate().is_leader(), "its process leads on, as on a node that is cut off");
    // As of a StatefulSet, whose pods keep their names.
    node.create(users[0]).await;
    let end = end_after_renewal(&world).await;
    node.report(users[0], [&ended(end), &running()]).await;
    throughout(LOOK, "another pod of that name has ended", follows).await;
    assert!(a.candidate().is_leader());
    assert_eq!(within(PATIENCE, "the candidate stops", a.running.stop()).await, LeaseEnd::Released);
    b.elected().await;
}
