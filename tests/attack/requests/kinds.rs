//! The objects of the requests: few kinds, namespaces and names, so that rules and requests often match.

/// A kind of object, as it appears in paths.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub resource: &'static str,
    pub namespaced: bool,
    pub subresources: &'static [&'static str],
    /// The weight with which it is chosen.
    pub weight: usize,
}

pub const NAMESPACES: [&str; 3] = ["a", "b", "kube-system"];
pub const NAMES: [&str; 5] = ["x", "y", "web-0", "system:node:n", "a"];

const fn kind(
    group: &'static str,
    resource: &'static str,
    namespaced: bool,
    subresources: &'static [&'static str],
    weight: usize,
) -> Kind {
    Kind { group, version: "v1", resource, namespaced, subresources, weight }
}

/// `example.com` has custom resources, `agg.example.com` is an aggregated API; the others are built in.
pub const KINDS: [Kind; 22] = [
    kind("", "pods", true, &["status", "status", "eviction", "log", "resize"], 12),
    kind("", "configmaps", true, &[], 6),
    kind("", "secrets", true, &[], 1),
    kind("", "services", true, &["status"], 2),
    kind("", "events", true, &["status"], 6),
    kind("", "serviceaccounts", true, &["token"], 6),
    kind("", "bindings", true, &[], 1),
    kind("", "nodes", false, &["status"], 2),
    kind("", "persistentvolumes", false, &["status"], 1),
    kind("apps", "deployments", true, &["status", "scale"], 6),
    kind("events.k8s.io", "events", true, &[], 5),
    kind("rbac.authorization.k8s.io", "clusterroles", false, &[], 3),
    kind("coordination.k8s.io", "leases", true, &[], 2),
    kind("certificates.k8s.io", "certificatesigningrequests", false, &["status", "approval"], 1),
    kind("authorization.k8s.io", "subjectaccessreviews", false, &[], 3),
    kind("authorization.k8s.io", "selfsubjectaccessreviews", false, &[], 2),
    kind("authorization.k8s.io", "selfsubjectrulesreviews", false, &[], 2),
    kind("authorization.k8s.io", "localsubjectaccessreviews", true, &[], 2),
    kind("authentication.k8s.io", "tokenreviews", false, &[], 5),
    kind("authentication.k8s.io", "selfsubjectreviews", false, &[], 2),
    kind("example.com", "widgets", true, &["status", "scale"], 6),
    kind("agg.example.com", "things", true, &["status", "scale", "start", "exec", "proxy"], 6),
];
