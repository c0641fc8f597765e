//! Objects that tests need on the server.

use crate::wait::until_told;
use http::Request;
use kube_client::Client;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Creates it unless it exists, as soon as the server has its kind.
pub async fn create(client: &Client, path: &str, object: &Value) {
    until_told(PATIENCE, Duration::from_millis(20), path, async || {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).expect("a request");
        match client.request::<Value>(request).await {
            // Before the kind is served, the answer is no `Status` of the API.
            Err(kube_client::Error::Api(status)) if status.code == 404 => false,
            Err(kube_client::Error::Api(status)) if status.is_already_exists() => true,
            Err(error) => panic!("{path}: {error}: {object}"),
            Ok(_) => true,
        }
    })
    .await;
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
