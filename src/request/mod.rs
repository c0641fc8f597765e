//! Finds out what a request asks of the API server.
//!
//! ```
//! use http::Request;
//! use kube_leader_gate::request::{RequestInfo, Verb};
//!
//! let read = Request::get("/apis/apps/v1/namespaces/default/deployments?watch=true").body(())?;
//! let info = RequestInfo::of(&read);
//! assert!(info.is_read());
//! assert_eq!(info.verb(), Verb::Watch);
//! assert_eq!(info.target().to_string(), "deployments.apps");
//!
//! // A GET, but it runs a command. The server would take the second path for the first.
//! for (path, verb) in [("web-0/exec", Verb::Connect), ("web-0/%65xec", Verb::Unknown)] {
//!     let exec = Request::get(format!("/api/v1/namespaces/default/pods/{path}?command=reboot")).body(())?;
//!     assert!(!RequestInfo::of(&exec).is_read());
//!     assert_eq!(RequestInfo::of(&exec).verb(), verb);
//! }
//! # Ok::<(), http::Error>(())
//! ```
//!
//! [`RequestInfo`] reads the method, the URI and the `Connection` headers only. It reads no body, allocates nothing
//! and never fails.
//!
//! 1. A **read** is a `GET` or `HEAD` that the server can only understand as a plain read. An `OPTIONS` on a path
//!    that is not a resource (`/version`, `/healthz`, discovery) is a read too. Methods are compared byte for byte:
//!    `get` is not a read.
//! 2. `exec`, `attach` and `portforward` are never reads, whatever the method. Clients send them as `GET`.
//! 3. A read through a `proxy` subresource is a read. A request below the legacy `/proxy/` prefix is not.
//! 4. A request for a protocol upgrade is not a read, since the gate cannot see what runs over the new connection.
//!    There is one exception: a plain read of `v1` of a built-in API group (and `v2` of `autoscaling`). There the
//!    server ignores the upgrade, or grants it for a watch or a log only. Any other version may be an aggregated API.
//!    An upgrade turns only a `GET` or `HEAD` into a `connect`. Any other method keeps its verb.
//! 5. **A mutation is parsed only in the spelling of an ordinary client.** A segment that says *what kind of object* must
//!    be plain (lower-case letters, digits, `.`, `-`, `_`). A segment that says *which object* may hold what an encoder
//!    makes of a name (`system%3Anode`). Any other mutation does not parse: its verb is [`Verb::Unknown`], its parts are
//!    empty, and no rule permits it.
//! 6. **A read may have an odd spelling, if it has only one meaning.** Names may hold any escapes (`my%20role`,
//!    `system%3anode`). Names of metrics may have capitals, `:`, `*` and escaped punctuation (`pubsub%7Cmessages`). A
//!    path may end in a slash. An aggregated API may have segments after the subresource. The path after `proxy`
//!    belongs to the backend.
//! 7. The path must begin at the API server's root. Behind a layer that adds a base path (`/k8s/clusters/c-1/api/...`), no
//!    path looks like a resource, and the gate knows a `GET` of `exec` only by its upgrade. Put the gate above that layer, where
//!    kube's `ClientBuilder` puts the layers that it is given.
//!
//! # Reads that are refused
//! On a follower, the gate rejects a `GET` or `HEAD` in one of these spellings, although a server may answer it as a
//! read. No client library uses them.
//!
//! | refused | because |
//! | --- | --- |
//! | empty segments (`//`), segments of dots; below `proxy` also encoded ones | a gateway that cleans paths sees another path |
//! | `;`, a backslash; names that decode to a slash, a backslash, `;`, `%` or a control character | a second server may decode the path again or cut parameters off, and then sees another path |
//! | escapes in the group or version; escapes in the resource or subresource, except of punctuation | the server reads `%65xec` as `exec` |
//! | `exec`, `attach`, `portforward`, `proxy`, `watch` and `namespaces` with capitals | this server reads them as other words, but the next server may not |
//! | `exec`, `attach` or `portforward` after a subresource | an aggregated API may have more levels than the server knows |
//! | capitals in a group or version; a first segment like `/API` or `/apiv1` | the server knows no such path, so it has no answer |
//! | bytes that are not ASCII; names that do not decode to UTF-8 | other servers read them as other characters: `%C0%AE` as a dot |
//! | `OPTIONS` on a resource | backends behind the server may act on it |
//!
//! If a path parses, its parts are those of the server's own `RequestInfo`, with two exceptions:
//! [`name`](RequestInfo::name) never comes from a field selector, and the names of metrics keep their escapes.

pub(crate) mod answer;
mod byte_class;
mod path;
mod query;
mod resource;
mod segment;
mod verb;

use http::{Method, Request, Uri};
use percent_encoding::percent_decode_str;
use std::{borrow::Cow, cell::OnceCell, fmt};

pub(crate) use self::answer::leaves_open;
use self::path::{Connection, Kind, Parts, Prefix};
pub(crate) use self::query::has_no_room;
pub(crate) use self::resource::ResourceRequest;
use self::resource::Target;
use self::segment::Segment;
pub(crate) use self::verb::Receiver;
pub use self::verb::Verb;
pub(crate) use self::verb::is_built_in;

/// What a request asks. It borrows from the request.
///
/// The first method that needs the path parses it, and the others use that. Only [`name`](Self::name) and
/// [`namespace`](Self::namespace) allocate, and only if there is something to decode. The [module](self) has the rules.
#[derive(Clone)]
pub struct RequestInfo<'a> {
    method: &'a Method,
    uri: &'a Uri,
    upgrade: bool,
    /// Empty parts if the path has an odd spelling, unless this is a read: no rule or closure permits a misread write.
    parts: OnceCell<Parts<'a>>,
}

impl<'a> RequestInfo<'a> {
    /// Describes this request.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self::from_parts(request.method(), request.uri(), verb::is_asked_for(request.headers()))
    }

    /// Describes a request by its parts. `upgrade` says whether it has a `Connection: upgrade` header.
    #[must_use]
    pub fn from_parts(method: &'a Method, uri: &'a Uri, upgrade: bool) -> Self {
        Self { method, uri, upgrade, parts: OnceCell::new() }
    }

    /// Whether the request changes nothing. A follower may then send it under any policy.
    #[must_use]
    pub fn is_read(&self) -> bool {
        // The method first: most writes need no look at the path.
        self.has_reading_method() && self.reads(self.parts())
    }

    /// What the request does.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.verb_on(self.parts())
    }

    /// Whether the path parses, for tests.
    #[doc(hidden)]
    #[cfg(any(test, feature = "test-util", feature = "internal"))]
    #[must_use]
    pub fn is_parsed(&self) -> bool {
        self.parts().kind != Kind::Unparsed
    }

    /// The resource's API group. Empty for the core group, and if the request addresses no resource.
    #[must_use]
    pub fn group(&self) -> &'a str {
        self.resource_parts().group
    }

    /// The version of the group. Empty if the request addresses no resource.
    #[must_use]
    pub fn version(&self) -> &'a str {
        self.resource_parts().version
    }

    /// The resource, in the plural as in the path. Empty if the request addresses none. In the read of a metric it
    /// may hold escapes: `pubsub%7Cmessages`.
    #[must_use]
    pub fn resource(&self) -> &'a str {
        self.resource_parts().resource
    }

    /// The subresource as in the path. Empty if the request addresses none. It may hold escapes, as
    /// [`resource`](Self::resource) may.
    #[must_use]
    pub fn subresource(&self) -> &'a str {
        self.resource_parts().subresource
    }

    /// The namespace, decoded. For a `namespaces` object it is the object's own name, as on the server.
    #[must_use]
    pub fn namespace(&self) -> Option<Cow<'a, str>> {
        decoded(self.resource_parts().namespace)
    }

    /// The object's name, decoded. A `create` has none.
    #[must_use]
    pub fn name(&self) -> Option<Cow<'a, str>> {
        decoded(self.resource_parts().name)
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &'a Method {
        self.method
    }

    /// The path as in the URI.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.uri.path()
    }

    /// The query as in the URI.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.uri.query()
    }

    /// Whether the request asks for a protocol upgrade.
    #[must_use]
    pub fn is_upgrade(&self) -> bool {
        self.upgrade
    }

    /// What the request addresses, for messages: `resource[.group][/subresource]`, or the path if it is not a
    /// resource.
    #[must_use]
    pub fn target(&self) -> impl fmt::Display + use<'a> {
        Target { path: self.path(), parts: *self.parts() }
    }

    /// The request as rules see it. `None` if it addresses no resource, or if the server may understand it
    /// differently:
    ///
    /// - it is oddly spelled, or has a legacy verb in its path (then the server's verb differs from the method's);
    /// - it asks an aggregated API for a write and for an upgrade, and that API may grant either;
    /// - its method cannot open an `exec`, `attach` or `portforward`.
    pub(crate) fn on_resource(&self) -> Option<ResourceRequest<'a>> {
        let parts = *self.parts();
        let verb = self.verb_on(&parts);
        let trusted = match parts.connection {
            Connection::None => {
                !self.upgrade || verb == Verb::Connect || verb::is_answered_by_the_server(&parts)
            }
            Connection::Exec => matches!(*self.method, Method::GET | Method::POST),
            Connection::Proxy => true,
        };
        (trusted && parts.kind == Kind::Resource && !parts.odd && parts.prefix == Prefix::None)
            .then(|| ResourceRequest { verb, query: self.query(), parts })
    }

    fn parts(&self) -> &Parts<'a> {
        self.parts.get_or_init(|| {
            let parts = Parts::of(self.uri.path());
            if self.understands(&parts) { parts } else { Parts::default() }
        })
    }

    /// Whether the path has one meaning for this method.
    #[inline]
    fn understands(&self, parts: &Parts<'_>) -> bool {
        !parts.odd || self.has_reading_method() && self.reads(parts)
    }

    fn has_reading_method(&self) -> bool {
        matches!(*self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// Whether a reading method changes nothing on these parts.
    #[inline]
    fn reads(&self, parts: &Parts<'_>) -> bool {
        if self.upgrade && !verb::is_ignored(self.method, parts) {
            return false;
        }
        match parts.kind {
            Kind::Resource => {
                *self.method != Method::OPTIONS
                    && parts.prefix != Prefix::Proxy
                    && parts.connection != Connection::Exec
            }
            Kind::NonResource => true,
            Kind::Unparsed => false,
        }
    }

    /// What the request does, and who decides on it.
    pub(crate) fn effect(&self) -> (Verb, Receiver) {
        use Verb::{Create, Delete, DeleteCollection, Patch, Update};
        let parts = self.parts();
        let verb = self.verb_on(parts);
        let receiver = match verb {
            Create | Update | Patch | Delete | DeleteCollection if parts.kind == Kind::Resource => {
                Receiver::ApiServer
            }
            _ => Receiver::Backend,
        };
        (verb, receiver)
    }

    /// The parts, or empty parts if the request addresses no resource.
    fn resource_parts(&self) -> Parts<'a> {
        if self.parts().kind == Kind::Resource { *self.parts() } else { Parts::default() }
    }

    fn verb_on(&self, parts: &Parts<'_>) -> Verb {
        verb::of(self.method, self.query(), self.upgrade, parts)
    }
}

/// Without the query: it is the caller's, and this may end up in logs.
impl fmt::Debug for RequestInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestInfo")
            .field("method", self.method)
            .field("path", &self.path())
            .field("upgrade", &self.upgrade)
            .finish_non_exhaustive()
    }
}

/// Decodes the part. Allocates only if there is something to decode.
fn decoded(part: &str) -> Option<Cow<'_, str>> {
    (!part.is_empty()).then(|| percent_decode_str(part).decode_utf8_lossy())
}

/// Whether a canonical path can hold this group, resource or subresource.
pub(crate) fn is_word(text: &str) -> bool {
    Segment::of(text).and_then(Segment::structural).is_some()
}

/// Whether the name of a canonical path can decode to this.
pub(crate) fn is_name(text: &str) -> bool {
    Segment::of(text).filter(|segment| !segment.is_escaped()).and_then(Segment::data).is_some()
}
