//! The verb of a request.

use std::fmt;

use http::Method;

use super::path::{Connection, Kind, Parts, Prefix};
use super::query;

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

    /// Whether the API server itself carries the request out, and no backend behind it.
    #[cfg(feature = "election")]
    pub(crate) const fn changes_a_resource(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection)
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
        _ if upgrade
            && matches!(*method, Method::GET | Method::HEAD)
            && !super::upgrade::is_ignored(method, parts) =>
        {
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
