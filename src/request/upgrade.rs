//! Whether a request asks for a protocol upgrade.

use super::path::{Connection, Kind, Parts, Prefix};
use http::{
    HeaderMap, Method,
    header::{CONNECTION, HeaderValue},
};

/// The API groups whose `v1` a kube-apiserver serves by itself. Their plain resources have no connection to upgrade
/// to, except for a watch or a log over WebSocket, which are reads.
const BUILT_IN: [&str; 21] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Whether the headers ask for an upgrade. The API server's proxies look for the word anywhere in any `Connection`
/// header. They do not need an `Upgrade` header, and ignore an `Upgrade` header alone.
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    const WORD: &[u8] = b"upgrade";
    let is_upgrade = |value: &HeaderValue| {
        value.as_bytes().windows(WORD.len()).any(|window| window.eq_ignore_ascii_case(WORD))
    };
    // Requests have a few headers. To look at all of them is cheaper than to hash one name.
    headers.iter().any(|(name, value)| *name == CONNECTION && is_upgrade(value))
}

/// Whether the server ignores the upgrade. Elsewhere (proxies, aggregated APIs, paths that are not resources) a
/// backend may grant it.
pub(super) fn is_ignored(method: &Method, parts: &Parts<'_>) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
        && parts.kind == Kind::Resource
        && parts.prefix != Prefix::Proxy
        && parts.connection == Connection::None
        && is_answered_by_the_server(parts)
}

/// Whether a kube-apiserver serves this version of this group by itself. The group's name alone is not enough: an
/// operator may register an aggregated API for a version that the server does not have.
pub(super) fn is_answered_by_the_server(parts: &Parts<'_>) -> bool {
    is_built_in(parts.group) && matches!((parts.group, parts.version), (_, "v1") | ("autoscaling", "v2"))
}

/// Whether a kube-apiserver serves a version of this group by itself.
pub(crate) fn is_built_in(group: &str) -> bool {
    BUILT_IN.contains(&group)
}
