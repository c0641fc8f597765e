//! Two fences around some of the same replicas.

use super::{
    ground::{ACCOUNT, Ground, refused, send},
    managing::{BINDINGS, POLICIES, get, texts},
};
use crate::support::until;
use http::Method;
use kube_leader_gate::{Policy, lease::LeaseName};
use serde_json::{Value, json};
use test_support::kube_leader_gate_fence::{Fence, Writers};

/// On a server of its own, where the names of users are free.
pub async fn fence_with_one_common_writer_is_found() {
    let ground = Ground::alone().await;
    ground.hold("no-pod").await;
    let fence = |lease: &str, writers: &str| {
        let lease = LeaseName::new(&ground.namespace, lease).expect("a name");
        let writers: Writers = writers.parse().expect("writers");
        Fence::new(&lease, &writers, &Policy::strict()).expect("a fence")
    };
    let account = format!("service-account:{}/{ACCOUNT}", ground.namespace);
    let as_user = format!("users:system:serviceaccount:{}:{ACCOUNT}", ground.namespace);
    for (one, two, overlap) in [
        ("users:a,b", "users:b,c", true),
        ("users:a", "users:ab,c", false),
        ("users:b", "group:b", false),
        (&*account, &*as_user, true),
        (&as_user, &account, true),
        (&account, "users:a", false),
    ] {
        let (other, fence) = (fence("other", one), fence("operator", two));
        for fence in [&other, &fence] {
            fence.apply(&ground.admin).await.expect("applied");
        }
        let check = async || texts(&fence.check(&ground.admin).await.expect("checked"));
        let says = format!("judges the same replicas by the Lease \"{}/other\"", ground.namespace);
        let is_found = |found: &[String]| found.len() == 1 && found[0].contains(&says);
        let found = check().await;
        assert!(if overlap { is_found(&found) } else { found.is_empty() }, "{one}, {two}: {found:?}");

        // Another tool has applied it, with a label and no annotation of its own.
        let mut policy = get(&ground, POLICIES, other.name()).await.expect("it stands");
        policy["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm".into();
        policy["metadata"]["annotations"] = Value::Null;
        let path = format!("{POLICIES}/{}", other.name());
        send(&ground.admin, Method::PUT, &path, Some(&policy)).await.expect("changed");
        assert_eq!(is_found(&check().await), overlap, "{one}, {two}");
        for collection in [BINDINGS, POLICIES] {
            let path = format!("{collection}/{}", other.name());
            send(&ground.admin, Method::DELETE, &path, None).await.expect("deleted");
        }
        fence.remove(&ground.admin).await.expect("removed");
    }
}

/// What the finding means: the holder of one Lease alone may not write.
pub async fn overlapping_fence_stops_the_holder() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    ground.hold("pod-a").await;
    let a = ground.pod("pod-a").await;
    until("the holder may write", async || ground.touch(&a).await.is_ok()).await;
    let other = LeaseName::new(&ground.namespace, "other").expect("a name");
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", ground.namespace);
    let writers = Writers::users([user]).expect("a user");
    let other = Fence::new(&other, &writers, &Policy::strict()).expect("a fence");
    other.apply(&ground.admin).await.expect("applied");
    let lease = json!({ "metadata": { "name": "other" }, "spec": { "holderIdentity": "x" } });
    let leases = ground.lease_path().replace("/operator", "");
    send(&ground.admin, Method::POST, &leases, Some(&lease)).await.expect("created");
    until("the holder is refused", async || refused(&ground.touch(&a).await)).await;
    assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")).len(), 1);
}
