//! A fence that goes, and comes back.

use super::{
    ground::{Ground, refused, send},
    managing::{ANCHOR, BINDINGS, POLICIES, get, texts},
};
use crate::support::until;
use http::Method;
use kube_leader_gate::{Policy, fence::ErrFence};
use serde_json::{Value, json};
use std::{error::Error, time::Duration};

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
        // The passing of time is the condition: three of the API server's seconds.
        tokio::time::sleep(Duration::from_secs(3)).await;
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
