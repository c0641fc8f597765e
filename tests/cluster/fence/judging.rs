//! What the API server refuses, and what it lets pass.

use super::ground::{Ground, refusal, refused, send};
use crate::support::until;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{Method, Request};
use kube_leader_gate::{
    Policy,
    lease::LeaseName,
    policy::{Preset, Rule},
    request::Verb,
};
use serde_json::{Value, json};
use test_support::kube_leader_gate_fence::{Fence, Writers};

pub async fn only_the_pod_that_holds_the_lease_may_write() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    let (a, b) = (ground.pod("pod-a").await, ground.pod("pod-b").await);
    for (holder, other) in [((&a, "pod-a"), (&b, "pod-b")), ((&b, "pod-b"), (&a, "pod-a"))] {
        ground.hold(holder.1).await;
        until("the holder may write", async || ground.touch(holder.0).await.is_ok()).await;
        let answer = ground.touch(other.0).await;
        let message = refusal(&answer).expect("refused");
        let says = format!(
            "write attempt rejected as client is not leader: {:?} holds the lease {}/operator, and this request comes \
             from {:?}",
            holder.1, ground.namespace, other.1
        );
        assert!(message.ends_with(&says), "{message}");
        assert!(ground.touch(&ground.admin).await.is_ok(), "the fence does not judge an administrator");
        let read = send(other.0, Method::GET, &ground.path("configmaps"), None).await;
        assert!(read.is_ok(), "reads pass: {read:?}");
    }
}

/// `Identity::infer` reads it there, and so its name is the one that the fence compares.
pub async fn token_says_its_pod_in_its_claims() {
    let ground = Ground::new().await;
    let claims = async |pod| -> Value {
        let token = ground.token(pod).await;
        let claims = token.split('.').nth(1).expect("a JWT");
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON")
    };
    assert_eq!(claims(Some("pod-a")).await["kubernetes.io"]["pod"]["name"], "pod-a");
    assert_eq!(claims(None).await["kubernetes.io"]["pod"], Value::Null);
}

/// No candidate leads then. With `Deny`, Kubernetes would refuse every write in the cluster, of any user.
pub async fn a_missing_lease_stops_no_client_and_a_new_one_does() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    let a = ground.pod("pod-a").await;
    ground.hold("pod-a").await;
    until("the holder may write", async || ground.touch(&a).await.is_ok()).await;
    ground.delete_lease().await;
    let b = ground.pod("pod-b").await;
    until("any replica may write", async || ground.touch(&b).await.is_ok()).await;
    ground.touch(&ground.admin).await.expect("other clients may write");
    let lease = json!({ "metadata": { "name": "operator" }, "spec": { "holderIdentity": "pod-b" } });
    let leases = ground.lease_path().replace("/operator", "");
    send(&b, Method::POST, &leases, Some(&lease)).await.expect("a lease is exempt");
    until("the former holder is refused", async || refused(&ground.touch(&a).await)).await;
    ground.touch(&b).await.expect("the new holder may write");
}

/// Free, or written by a program that leaves fields out.
pub async fn a_lease_without_a_holder_refuses_every_replica() {
    let ground = Ground::new().await;
    ground.fenced(&ground.fence(&Policy::strict())).await;
    let (podless, a) = (ground.podless_config().await, ground.pod("pod-a").await);
    let podless = kube_client::Client::try_from(podless).expect("a client");
    ground.hold("pod-a").await;
    until("the holder may write", async || ground.touch(&a).await.is_ok()).await;
    assert!(refusal(&ground.touch(&podless).await).expect("refused").ends_with("a token that names no pod"));
    ground.hold("").await;
    until("the former holder is refused", async || refused(&ground.touch(&a).await)).await;
    assert!(refused(&ground.touch(&podless).await), "no holder and no pod are not the same");
    ground.delete_lease().await;
    ground.post_lease().await;
    until("an empty spec refuses", async || {
        refusal(&ground.touch(&a).await).is_some_and(|message| message.contains("no candidate holds"))
    })
    .await;
}

/// On a server of its own: other tests have users of the group.
pub async fn users_hold_by_their_names() {
    let ground = Ground::alone().await;
    let lease = LeaseName::new(&ground.namespace, "operator").expect("a name");
    let users = ["restricted-20", "restricted-21"];
    let writers = Writers::users(users).and_then(|it| it.prefix("restricted-")).expect("users");
    let group = Writers::group("restricted").and_then(|it| it.prefix("restricted-")).expect("a group");
    for user in users {
        let subject = json!({ "kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io" });
        let role = json!({ "kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io" });
        let binding = json!({ "metadata": { "name": user }, "subjects": [subject], "roleRef": role });
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings", ground.namespace);
        send(&ground.admin, Method::POST, &path, Some(&binding)).await.expect("bound");
    }
    let [a, b] = users.map(|user| ground.cluster.client(user));
    for writers in [writers, group] {
        ground.hold("20").await;
        let fence = Fence::new(&lease, &writers, &Policy::strict()).expect("a fence");
        fence.apply(&ground.admin).await.expect("applied");
        until("the other is refused", async || refused(&ground.touch(&b).await)).await;
        ground.touch(&a).await.expect("the holder may write");
        fence.remove(&ground.admin).await.expect("removed");
        until("the fence is gone", async || ground.touch(&b).await.is_ok()).await;
    }
}

/// What the policy permits, followers may send. Names with quotes end no expression.
pub async fn the_policy_is_exempt_and_its_names_are_data() {
    let ground = Ground::new().await;
    let policy = Policy::strict()
        .allow(Preset::Events)
        .allow(Preset::TokenRequests)
        .allow(Rule::new("", "configmaps").verbs([Verb::Patch]).namespace(&ground.namespace).name("own"))
        .allow(
            Rule::new("rbac.authorization.k8s.io", "clusterroles")
                .name("' || true || '")
                .verbs([Verb::Patch]),
        );
    ground.fenced(&ground.fence(&policy)).await;
    let a = ground.pod("pod-a").await;
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let path = |name: &str| format!("{}?fieldManager=test", ground.path(&format!("configmaps/{name}")));
    for _ in 0..2 {
        send(&a, Method::PATCH, &path("own"), Some(&map("own"))).await.expect("created, then updated");
    }
    assert!(refused(&send(&a, Method::PATCH, &path("other"), Some(&map("other"))).await));
    let delete = send(&a, Method::DELETE, &ground.path("configmaps/own"), None).await;
    assert!(refused(&delete), "the rule permits no deletion: {delete:?}");
    let token = json!({ "spec": { "audiences": [] } });
    let tokens = ground.path("serviceaccounts/operator/token");
    send(&a, Method::POST, &tokens, Some(&token)).await.expect("permitted");
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                       "metadata": { "name": "x" }, "rules": [] });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert!(refused(&send(&a, Method::POST, roles, Some(&role)).await));
}

/// Admission sees fewer verbs than the gate.
pub async fn verdicts_are_coarser_as_documented() {
    let ground = Ground::new().await;
    let policy = Policy::strict()
        .allow(Rule::new("", "pods").verbs([Verb::Delete]))
        .allow(Rule::new("", "secrets").verbs([Verb::Update]));
    ground.fenced(&ground.fence(&policy)).await;
    let a = ground.pod("pod-a").await;
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0 });
    let deleted = send(&a, Method::DELETE, &ground.path("pods?labelSelector=nothing"), Some(&options)).await;
    assert_eq!(deleted.expect("an empty collection has no object to judge")["items"], json!([]));
    let deleted = send(&a, Method::DELETE, &ground.path("pods"), Some(&options)).await.expect("a deletion");
    assert!(!deleted["items"].as_array().expect("pods").is_empty());
    let a = ground.pod("pod-b").await;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "x" } });
    for path in ["secrets/x?fieldManager=a", "secrets/x?fieldManager=b&force=true"] {
        send(&a, Method::PATCH, &ground.path(path), Some(&secret)).await.expect("a patch is an update");
    }
    let nameless = json!({ "metadata": { "generateName": "x-" } });
    send(&a, Method::POST, &ground.path("secrets"), Some(&nameless)).await.expect("as a patch may create it");
    assert!(refused(&send(&a, Method::DELETE, &ground.path("secrets/x"), None).await));
}

/// Admission is about resources. The gate rejects such a write.
pub async fn path_that_is_no_resource_is_not_judged() {
    let ground = Ground::new().await;
    ground.fenced(&ground.fence(&Policy::strict())).await;
    let path = "/debug/flags/v";
    ground.grant("verbosity", json!([{ "nonResourceURLs": [path], "verbs": ["put"] }])).await;
    let b = ground.pod("pod-b").await;
    until("a follower may write there", async || {
        b.request_text(Request::put(path).body(b"0".to_vec()).expect("a request")).await.is_ok()
    })
    .await;
    assert!(refused(&ground.touch(&b).await));
}
