//! A fence that goes, and comes back.

use super::{
    ground::{Ground, refused, send},
    managing::{ANCHOR, BINDINGS, POLICIES, get, texts},
};
use crate::support::until;
use http::Method;
use kube_leader_gate::Policy;
use serde_json::{Value, json};
use std::{error::Error, time::Duration};
use test_support::kube_leader_gate_fence::ErrFence;

/// A finalizer holds the policy of the fence, or of the anchor.
pub async fn fence_that_is_being_deleted_does_not_stand() {
    let ground = Ground::alone().await;
    ground.hold("no-pod").await;
    let fence = ground.fence(&Policy::strict());
    fence.apply(&ground.admin).await.expect("applied");
    for name in [fence.name(), ANCHOR] {
        let path = format!("{POLICIES}/{name}");
        let held = async |finalizers: Value| {
            let mut policy = get(&ground, POLICIES, name).await.expect("it is there");
            policy["metadata"]["finalizers"] = finalizers;
            send(&ground.admin, Method::PUT, &path, Some(&policy)).await.expect("changed");
        };
        held(json!(["example.com/hold"])).await;
        let says = |error: &ErrFence| {
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            assert!(cause.contains("is being deleted") && cause.contains("(example.com/hold)"), "{cause}");
        };
        if name == ANCHOR {
            send(&ground.admin, Method::DELETE, &path, None).await.expect("it ends later");
        } else {
            says(&fence.remove(&ground.admin).await.unwrap_err());
            says(&fence.remove(&ground.admin).await.unwrap_err());
        }
        says(&fence.apply(&ground.admin).await.unwrap_err());
        let found = texts(&fence.check(&ground.admin).await.expect("checked"));
        assert!(found.iter().any(|it| it.contains("is being deleted") && it.contains(name)), "{found:?}");
        held(json!([])).await;
        fence.apply(&ground.admin).await.expect("applied");
        assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
    }
}

/// Helm puts its own label on the manifests of a chart. All fences share the anchor.
pub async fn anchor_of_another_tool_stands() {
    let ground = Ground::alone().await;
    ground.hold("no-pod").await;
    let fence = ground.fence(&Policy::strict());
    fence.apply(&ground.admin).await.expect("applied");
    let change = async |collection, change: fn(&mut Value)| {
        let mut anchor = get(&ground, collection, ANCHOR).await.expect("it stands");
        change(&mut anchor);
        let path = format!("{collection}/{ANCHOR}");
        send(&ground.admin, Method::PUT, &path, Some(&anchor)).await.expect("changed")
    };
    let label = |anchor: &mut Value| {
        anchor["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm".into();
    };
    let versions = [change(POLICIES, label).await, change(BINDINGS, label).await];
    assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
    fence.remove(&ground.admin).await.expect("removed");
    fence.apply(&ground.admin).await.expect("applied");
    for (collection, labelled) in [POLICIES, BINDINGS].into_iter().zip(versions) {
        let now = get(&ground, collection, ANCHOR).await.expect("it stands");
        assert_eq!(now["metadata"]["resourceVersion"], labelled["metadata"]["resourceVersion"]);
    }

    // It follows no Lease any more.
    change(POLICIES, |anchor| anchor["spec"]["paramKind"]["kind"] = "Other".into()).await;
    let found = texts(&fence.check(&ground.admin).await.expect("checked"));
    assert!(found.len() == 1 && found[0].contains("says something else"), "{found:?}");
    let error = fence.apply(&ground.admin).await.unwrap_err();
    assert!(error.to_string().contains("(managed by: Helm)"), "{error}");
}

/// The API server follows the Lease that the binding names. A restart would change nothing.
pub async fn binding_to_another_lease_is_the_first_suspect() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    let b = ground.pod("pod-b").await;
    let lease = json!({ "metadata": { "name": "other" }, "spec": { "holderIdentity": "pod-x" } });
    let leases = ground.lease_path().replace("/operator", "");
    send(&ground.admin, Method::POST, &leases, Some(&lease)).await.expect("created");
    let mut binding = get(&ground, BINDINGS, fence.name()).await.expect("it stands");
    binding["spec"]["paramRef"]["name"] = "other".into();
    let path = format!("{BINDINGS}/{}", fence.name());
    send(&ground.admin, Method::PUT, &path, Some(&binding)).await.expect("changed");
    until("it follows that one", async || {
        let found = texts(&fence.check_as(&b).await.expect("checked"));
        let says = "judges by the holder \"pod-x\", and the Lease names the holder \"no-pod\": unless check names \
                    another cause, this API server no longer reads the Lease";
        found.len() == 1 && found[0].contains(says)
    })
    .await;
}

/// A line break in a name, or a name that is too long: the API server leaves the message out.
pub async fn holder_that_no_message_can_show_is_no_stale_one() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    let b = ground.pod("pod-b").await;
    for holder in ["a\nb", &"x".repeat(6000)] {
        ground.hold(holder).await;
        let found = texts(&fence.check_as(&b).await.expect("checked"));
        assert!(found.len() == 1 && found[0].ends_with("could not name the holder"), "{found:?}");
    }
}

/// An API server stops reading Leases for its policies if for a second no binding names one, and begins again only with
/// its process (kubernetes/kubernetes#130887).
pub async fn fence_that_comes_back_follows_the_lease() {
    let ground = Ground::alone().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    let [a, b] = [ground.pod("pod-a").await, ground.pod("pod-b").await];
    let comes_back = async || {
        ground.hold("pod-a").await;
        until("it may write", async || ground.touch(&a).await.is_ok()).await;
        fence.remove(&ground.admin).await.expect("removed");
        // The passing of time is the condition: ten of the API server's seconds.
        tokio::time::sleep(Duration::from_secs(10)).await;
        fence.apply(&ground.admin).await.expect("applied");
        until("the fence is in force", async || refused(&ground.touch(&b).await)).await;
        ground.hold("pod-b").await;
    };
    comes_back().await;
    until("the former holder may not write", async || refused(&ground.touch(&a).await)).await;
    ground.touch(&b).await.expect("the holder may write");
    for replica in [&a, &b] {
        assert_eq!(texts(&fence.check_as(replica).await.expect("checked")), [""; 0]);
    }

    // Without the anchor, that server is stuck. If it is not, Kubernetes has mended this, and no anchor is needed.
    for collection in [BINDINGS, POLICIES] {
        let path = format!("{collection}/{ANCHOR}");
        send(&ground.admin, Method::DELETE, &path, None).await.expect("deleted");
    }
    let missing = texts(&fence.check(&ground.admin).await.expect("checked"));
    assert!(missing.len() == 2 && missing.iter().all(|it| it.contains(ANCHOR)), "{missing:?}");
    comes_back().await;
    let found = texts(&fence.check_as(&b).await.expect("checked"));
    let says = "judges by the holder \"pod-a\", and the Lease names the holder \"pod-b\"";
    assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
    assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
}
