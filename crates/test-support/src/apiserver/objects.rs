//! Objects that tests need on the server.

use http::Request;
use kube_client::Client;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Creates it unless it exists, as soon as the server has its kind.
pub async fn create(client: &Client, path: &str, object: &Value) {
    let creating = async {
        loop {
            let request = Request::post(path).header("content-type", "application/json");
            let answer = client
                .request::<Value>(request.body(object.to_string().into_bytes()).expect("a request"))
                .await;
            match answer {
                // Before the kind is served, the answer is no `Status` of the API.
                Err(kube_client::Error::Api(status)) if status.code == 404 => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(kube_client::Error::Api(status)) if status.is_already_exists() => return,
                answer => return drop(answer.unwrap_or_else(|error| panic!("{path}: {error}: {object}"))),
            }
        }
    };
    tokio::time::timeout(PATIENCE, creating).await.unwrap_or_else(|_| panic!("no such kind: {path}"));
}

/// Defines the kind of the widgets, `example.com/v1`, which have a status and a scale.
pub async fn define_widgets(client: &Client) {
    let definition = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                "subresources": {
                    "status": {},
                    "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
                },
            }],
        },
    });
    create(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
}
