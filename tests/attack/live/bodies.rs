//! Bodies with which a request takes effect if it reaches the server.

use crate::oracle::Reading;
use http::Method;
use serde_json::{Value, json};

/// A body and its content type.
pub struct Body {
    pub kind: &'static str,
    pub text: String,
}

const JSON: &str = "application/json";

/// The body that a request with this reading needs to change something. `number` differs each time.
pub fn body(method: &Method, reading: &Reading, number: usize) -> Option<Body> {
    let json = |value: Value| Some(Body { kind: JSON, text: value.to_string() });
    let name = if reading.name.is_empty() { format!("made-{number}") } else { reading.name.clone() };
    match method.as_str() {
        "POST" | "PUT" => json(whole(reading, &name, number)),
        "PATCH" => {
            let kind = ["application/merge-patch+json", "application/strategic-merge-patch+json"][number % 2];
            // A custom resource accepts only the first.
            let kind = if reading.built_in { kind } else { "application/merge-patch+json" };
            Some(Body { kind, text: patch(number).to_string() })
        }
        // Options in the body make the server ignore those in the query.
        "DELETE" if number.is_multiple_of(2) => {
            json(json!({ "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0 }))
        }
        _ => None,
    }
}

/// A patch that changes any object, and the status where there is one.
fn patch(number: usize) -> Value {
    json!({
        "metadata": { "labels": { "attack": number.to_string() } },
        "status": { "message": number.to_string() },
    })
}

fn whole(reading: &Reading, name: &str, number: usize) -> Value {
    match &*reading.subresource {
        "token" => {
            return json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        }
        "eviction" => {
            return json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
        }
        "scale" => {
            return json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": { "name": name, "namespace": reading.namespace }, "spec": { "replicas": number % 7 },
            });
        }
        _ => {}
    }
    let mut object = object(&reading.group, &reading.resource, &reading.namespace, name);
    object["metadata"]["labels"] = json!({ "attack": number.to_string() });
    if reading.subresource == "status" {
        object["status"] = json!({ "message": number.to_string() });
    }
    object
}

/// A valid object of this kind.
pub fn object(group: &str, resource: &str, namespace: &str, name: &str) -> Value {
    let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let container = json!({ "name": "c", "image": "i" });
    let reference = json!({ "kind": "Pod", "name": "x", "namespace": namespace });
    let attributes = json!({ "verb": "get", "resource": "pods", "namespace": "a" });
    let (kind, rest) = match resource {
        "pods" => ("Pod", json!({ "spec": { "containers": [container] } })),
        "configmaps" => ("ConfigMap", json!({ "data": { "key": name } })),
        "secrets" => ("Secret", json!({ "stringData": { "key": name } })),
        "services" => ("Service", json!({ "spec": { "ports": [{ "port": 80 }] } })),
        "serviceaccounts" => ("ServiceAccount", json!({})),
        "namespaces" => ("Namespace", json!({ "spec": { "finalizers": [] } })),
        "nodes" => ("Node", json!({})),
        "bindings" => ("Binding", json!({ "target": { "kind": "Node", "name": "x" } })),
        "events" if group.is_empty() => {
            ("Event", json!({ "involvedObject": reference, "reason": "Attack", "type": "Normal" }))
        }
        "events" => (
            "Event",
            json!({
                "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a", "reportingInstance": "a",
                "action": "Attack", "reason": "Attack", "type": "Normal", "regarding": reference,
            }),
        ),
        "deployments" => {
            let labels = json!({ "app": "a" });
            let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
            ("Deployment", json!({ "spec": { "selector": { "matchLabels": labels }, "template": template } }))
        }
        "clusterroles" => ("ClusterRole", json!({ "rules": [] })),
        "leases" => ("Lease", json!({ "spec": {} })),
        "persistentvolumes" => (
            "PersistentVolume",
            json!({
                "spec": {
                    "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/tmp" },
                },
            }),
        ),
        "subjectaccessreviews" => {
            ("SubjectAccessReview", json!({ "spec": { "user": "x", "resourceAttributes": attributes } }))
        }
        "selfsubjectaccessreviews" => {
            ("SelfSubjectAccessReview", json!({ "spec": { "resourceAttributes": attributes } }))
        }
        "localsubjectaccessreviews" => {
            ("LocalSubjectAccessReview", json!({ "spec": { "user": "x", "resourceAttributes": attributes } }))
        }
        "selfsubjectrulesreviews" => ("SelfSubjectRulesReview", json!({ "spec": { "namespace": "a" } })),
        "selfsubjectreviews" => ("SelfSubjectReview", json!({})),
        "tokenreviews" => ("TokenReview", json!({ "spec": { "token": "token-of-admin" } })),
        "widgets" => ("Widget", json!({ "spec": { "replicas": 1 } })),
        _ => ("Thing", json!({})),
    };
    let mut object = rest;
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    // Reviews are not stored, and have no name.
    if !kind.ends_with("Review") {
        object["metadata"] = json!({ "name": name });
    }
    object
}
