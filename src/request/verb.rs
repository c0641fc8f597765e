//! What a request does, by its method, its query, and whether it asks for a protocol upgrade.

use super::{
    path::{Connection, Kind, Parts, Prefix},
    query,
};
use http::{
    HeaderMap, Method,
    header::{CONNECTION, HeaderValue},
};
use std::fmt;

/// What a request does, in the words of Kubernetes authorization.
///
/// It is the API server's own verb, with these exceptions. Each of them makes a follower's request a mutation:
/// - `exec`, `attach`, `portforward` and `proxy` subresources are [`Connect`](Verb::Connect), whatever their method
///   (the server says `get` for a `GET`);
/// - a `GET` or `HEAD` that asks for a protocol upgrade is [`Connect`](Verb::Connect), unless the server ignores the
///   upgrade. Any other method keeps its verb;
/// - below the legacy `/watch/` prefix the method decides (the server says `watch`, even for a `DELETE`);
/// - a request that does not parse, or whose method the API does not use there, is [`Unknown`](Verb::Unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object, or a path that is not a resource.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection, or one object below the legacy `/watch/` prefix.
    Watch,
    /// `POST` on a resource.
    Create,
    /// `PUT` on a resource.
    Update,
    /// `PATCH`.
    Patch,
    /// `DELETE` with a name.
    Delete,
    /// `DELETE` without a name.
    DeleteCollection,
    /// Opens a connection through the API server.
    Connect,
    /// Anything below the legacy `/proxy/` prefix.
    Proxy,
    /// `HEAD` on a path that is not a resource.
    Head,
    /// `OPTIONS` on a path that is not a resource.
    Options,
    /// `POST` on a path that is not a resource.
    Post,
    /// `PUT` on a path that is not a resource.
    Put,
    /// Unknown: the request does not parse, or the API does not use its method.
    Unknown,
}

/// Who decides on a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// The API server changes a resource. It reads the body to its end before that.
    ApiServer,
    /// A server behind the API server, as a kubelet for an `exec`, or none that is known.
    Backend,
}

impl Verb {
    /// The verb as Kubernetes spells it in roles and audit logs. `unknown` for [`Verb::Unknown`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Connect => "connect",
            Self::Proxy => "proxy",
            Self::Head => "head",
            Self::Options => "options",
            Self::Post => "post",
            Self::Put => "put",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

pub(super) fn of(method: &Method, query: Option<&str>, upgrade: bool, parts: &Parts<'_>) -> Verb {
    let known = matches!(
        *method,
        Method::GET
            | Method::HEAD
            | Method::OPTIONS
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
    );
    match parts.kind {
        Kind::Unparsed => Verb::Unknown,
        _ if !known => Verb::Unknown,
        Kind::Resource if parts.prefix == Prefix::Proxy => Verb::Proxy,
        Kind::Resource if parts.connection != Connection::None => Verb::Connect,
        _ if upgrade && matches!(*method, Method::GET | Method::HEAD) && !is_ignored(method, parts) => {
            Verb::Connect
        }
        Kind::Resource => on_resource(method, query, parts),
        Kind::NonResource => on_path(method),
    }
}

fn on_resource(method: &Method, query: Option<&str>, parts: &Parts<'_>) -> Verb {
    match *method {
        Method::GET | Method::HEAD if parts.prefix == Prefix::Watch => Verb::Watch,
        Method::GET | Method::HEAD if !parts.name.is_empty() => Verb::Get,
        Method::GET | Method::HEAD if query::asks_to_watch(query) => Verb::Watch,
        Method::GET | Method::HEAD => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if parts.name.is_empty() => Verb::DeleteCollection,
        Method::DELETE => Verb::Delete,
        _ => Verb::Unknown,
    }
}

fn on_path(method: &Method) -> Verb {
    match *method {
        Method::GET => Verb::Get,
        Method::HEAD => Verb::Head,
        Method::OPTIONS => Verb::Options,
        Method::POST => Verb::Post,
        Method::PUT => Verb::Put,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::Unknown,
    }
}

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
