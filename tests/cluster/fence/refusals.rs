//! What a caller gets when the API server refuses a write.

use super::ground::{Ground, recognising, refused, send};
use crate::support::until;
use http::{Method, Request};
use kube_leader_gate::{Policy, request::Verb};
use serde_json::json;
use std::time::Duration;
use test_support::{
    apiserver::{SlowWebhook, Stage},
    kube_leader_gate_fence::ErrFenced,
};

pub async fn only_a_refusal_by_the_fence_becomes_err_fenced() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    let client = recognising(ground.config("pod-a").await, &fence);
    let error = ground.touch(&client).await.unwrap_err();
    let refused = ErrFenced::find(&error).expect("the fence's error");
    assert_eq!(refused.verb(), Verb::Create);
    let message = refused.message();
    assert!(message.contains(&format!("ValidatingAdmissionPolicy '{}'", fence.name())), "{message}");
    assert!(message.contains("configmaps \"map-"), "{message}");

    // The caller may ask for the answer in another encoding. (For CBOR the API server needs a feature gate.)
    let stranger = ground.pod("stranger-to-the-layer").await;
    for encoding in ["application/vnd.kubernetes.protobuf", "application/yaml"] {
        let map = json!({ "metadata": { "name": "a" } }).to_string().into_bytes();
        let request = || {
            let request = Request::post(ground.path("configmaps")).header("content-type", "application/json");
            request.header("accept", encoding).body(map.clone().into()).expect("a request")
        };
        let answer = stranger.send(request()).await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (403, &encoding.parse().unwrap())
        );
        let error = client.send(request()).await.expect_err(encoding);
        let found = ErrFenced::find(&error).expect("the fence's error").message();
        assert!(found.contains(fence.name()), "{encoding}: {found}");
    }

    // Another 403, whole.
    let restricted = recognising(ground.cluster.config("restricted-13"), &fence);
    let plain = ground.cluster.client("restricted-13");
    let path = ground.path("configmaps");
    let map = json!({ "metadata": { "name": "a" } });
    let [one, other] = [&restricted, &plain].map(|client| send(client, Method::POST, &path, Some(&map)));
    let (one, other) = (one.await.unwrap_err(), other.await.unwrap_err());
    let (kube_client::Error::Api(one), kube_client::Error::Api(other)) = (&one, &other) else {
        panic!("{one} {other}")
    };
    assert_eq!((one.code, &one.message, &one.reason), (403, &other.message, &other.reason));

    // And a success.
    ground.hold("pod-a").await;
    until("the holder may write", async || ground.touch(&client).await.is_ok()).await;
    let request = Request::get(path).body(Vec::new()).unwrap();
    assert!(client.request_text(request).await.unwrap().contains("map-"));
}

/// The API server judges each object of a collection by itself. Of those before the refusal it says nothing.
pub async fn half_done_deletion_of_a_collection_is_no_err_fenced() {
    const MAPS: usize = 20;
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    for map in 0..MAPS {
        ground.post("configmaps", &json!({ "metadata": { "name": format!("a-{map}") } })).await;
    }
    let client = recognising(ground.config("pod-a").await, &fence);
    ground.hold("pod-a").await;
    until("the holder may write", async || ground.touch(&client).await.is_ok()).await;
    // The API server deletes one after the other. So this takes twenty seconds, and the holder changes within.
    let (takes, stage) = (Duration::from_secs(1), Stage::Mutating);
    let webhook = SlowWebhook::register(ground.cluster, &ground.namespace, stage, takes).await;
    until("the webhook is asked", async || {
        ground.touch(&client).await.expect("the holder may write");
        webhook.asked() > 0
    })
    .await;
    let path = ground.path("configmaps");
    let maps = async || {
        let list = send(&ground.admin, Method::GET, &path, None).await.expect("a list");
        list["items"].as_array().expect("items").len()
    };
    let before = maps().await;
    let deleting = {
        let (client, path) = (client.clone(), path.clone());
        tokio::spawn(async move { send(&client, Method::DELETE, &path, None).await })
    };
    until("the deletion is under way", async || maps().await < before).await;
    ground.hold("pod-b").await;
    let error = deleting.await.expect("no panic").unwrap_err();
    assert!((1..before).contains(&maps().await), "some are gone");
    assert!(ErrFenced::find(&error).is_none(), "{error}");
    assert!(refused(&Err(error)), "the API server's own answer");
}
