//! The kinds of the built-in resources, for bodies without a kind and for empty lists.

use serde_json::Value;

use crate::path::Collection;

/// Built-in resources without a status subresource.
const WITHOUT_STATUS: [&str; 8] = [
    "configmaps",
    "endpoints",
    "endpointslices",
    "events",
    "leases",
    "rolebindings",
    "secrets",
    "serviceaccounts",
];

const KINDS: [(&str, &str); 25] = [
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
    ("localsubjectaccessreviews", "LocalSubjectAccessReview"),
    ("namespaces", "Namespace"),
    ("nodes", "Node"),
    ("pods", "Pod"),
    ("replicasets", "ReplicaSet"),
    ("secrets", "Secret"),
    ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("selfsubjectreviews", "SelfSubjectReview"),
    ("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ("serviceaccounts", "ServiceAccount"),
    ("services", "Service"),
    ("statefulsets", "StatefulSet"),
    ("subjectaccessreviews", "SubjectAccessReview"),
    ("tokenreviews", "TokenReview"),
];

/// The kind of a built-in resource.
pub(crate) fn known_kind(collection: &Collection) -> Option<&'static str> {
    if collection.is_custom() {
        return None;
    }
    KINDS.iter().find(|(resource, _)| *resource == collection.resource).map(|(_, kind)| *kind)
}

/// Whether the resource has a `/status`. An unknown resource counts as one that has.
pub(crate) fn has_status(collection: &Collection) -> bool {
    collection.is_custom() || !WITHOUT_STATUS.contains(&collection.resource.as_str())
}

/// The kind in the object, or the kind of its collection, or the name of the resource.
pub(crate) fn kind_of(collection: &Collection, object: &Value) -> String {
    match object["kind"].as_str() {
        Some(kind) if !kind.is_empty() => kind.to_owned(),
        _ => known_kind(collection).unwrap_or(&collection.resource).to_owned(),
    }
}
