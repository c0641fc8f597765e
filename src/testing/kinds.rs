//! The kinds of the built-in resources, for bodies that leave theirs out and for empty lists.

use serde_json::Value;

use super::path::Collection;

const KINDS: [(&str, &str); 22] = [
    ("bindings", "Binding"),
    ("configmaps", "ConfigMap"),
    ("cronjobs", "CronJob"),
    ("daemonsets", "DaemonSet"),
    ("deployments", "Deployment"),
    ("endpoints", "Endpoints"),
    ("endpointslices", "EndpointSlice"),
    ("events", "Event"),
    ("ingresses", "Ingress"),
    ("jobs", "Job"),
    ("leases", "Lease"),
    ("namespaces", "Namespace"),
    ("nodes", "Node"),
    ("pods", "Pod"),
    ("replicasets", "ReplicaSet"),
    ("secrets", "Secret"),
    ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("selfsubjectreviews", "SelfSubjectReview"),
    ("serviceaccounts", "ServiceAccount"),
    ("services", "Service"),
    ("statefulsets", "StatefulSet"),
    ("tokenreviews", "TokenReview"),
];

/// The kind of a built-in resource.
pub(super) fn known_kind(collection: &Collection) -> Option<&'static str> {
    if collection.is_custom() {
        return None;
    }
    KINDS.iter().find(|(resource, _)| *resource == collection.resource).map(|(_, kind)| *kind)
}

/// What the object says it is, else what its collection holds, else the resource's own name.
pub(super) fn kind_of(collection: &Collection, object: &Value) -> String {
    match object["kind"].as_str() {
        Some(kind) if !kind.is_empty() => kind.to_owned(),
        _ => known_kind(collection).unwrap_or(&collection.resource).to_owned(),
    }
}
