//! What a request asks of the API server.
//!
//! [`RequestInfo`] says it from the method, the URI and the `Connection` headers alone: no body is read, nothing is
//! allocated, and there is no request that it fails on.
//!
//! 1. A **read** is a `GET` or `HEAD` that the server can take for nothing but a plain read, or an `OPTIONS` on a path that
//!    is no resource (`/version`, `/healthz`, discovery). Methods are compared byte for byte: `get` is not one.
//! 2. `exec`, `attach` and `portforward` are no reads, whatever the method: clients send them as `GET`.
//! 3. Reads through a `proxy` subresource are reads; anything below the legacy `/proxy/` prefix is none.
//! 4. A request for a protocol upgrade is no read: what runs over the new connection cannot be judged. The one exception
//!    is a plain read of `v1` of a built-in API group (and `v2` of `autoscaling`), where the server ignores the wish, or
//!    grants a watch or a log. Any other version may be an aggregated API. An upgrade makes a `connect` of `GET` and
//!    `HEAD` alone: any other method is judged as if it did not ask.
//! 5. **A mutation is understood only in an ordinary client's spelling.** The server decodes a path before it takes it
//!    apart. So a segment that says *what kind of thing* is addressed must be plain (lower-case letters, digits, `.`,
//!    `-`, `_`), while a segment that says *which one* may hold what an encoder makes of a name (`system%3Anode`). Any
//!    other mutation does not parse: its verb is [`Verb::Unknown`], its parts are absent, and no rule permits it.
//! 6. **A read may be oddly spelled, as long as it has one reading.** Names may hold any escapes (`my%20role`,
//!    `system%3anode`), metrics may have capitals, `:`, `*` and escaped punctuation in theirs (`pubsub%7Cmessages`), a path
//!    may end in a slash, an aggregated API may have segments behind the subresource, and what follows `proxy` is the
//!    backend's.
//! 7. The path must begin at the API server's root. Below a layer that puts a base path in front (a cluster behind a
//!    gateway, `/k8s/clusters/c-1/api/...`) every path is one that is no resource: there a `GET` of `exec` is told from a
//!    read by its upgrade alone. Put the gate above that layer, where the layers given to kube's `ClientBuilder` are.
//!
//! # Reads that are refused
//! A `GET` or `HEAD` in one of these spellings is rejected on a follower, although a server may answer it as a read. No
//! client library makes them.
//!
//! | refused | because |
//! | --- | --- |
//! | empty segments (`//`), segments of dots, below `proxy` and encoded too | a gateway that cleans paths sees another path |
//! | `;`, a backslash, and in names what decodes to a slash, a backslash, `;`, `%` or a control character | a second server that decodes the path again, or cuts parameters off, sees another path |
//! | escapes in the group or version; in the resource or subresource, escapes of anything but punctuation | `%65xec` is `exec` for the server |
//! | `exec`, `attach`, `portforward`, `proxy`, `watch` and `namespaces` with capitals | they are other words for this server, perhaps not for the next |
//! | `exec`, `attach` or `portforward` behind a subresource | an aggregated API may have more levels than the server knows |
//! | capitals in a group or version; a first segment like `/API` or `/apiv1` | the server knows none, so it has nothing to answer |
//! | bytes that are not ASCII; names that do not decode to UTF-8 | other servers read them as other characters: `%C0%AE` as a dot |
//! | `OPTIONS` on a resource | backends behind the server may act on it |
//!
//! Where a path does parse, its parts are those that the server's own `RequestInfo` has, with two exceptions:
//! [`name`](RequestInfo::name) never comes from a field selector, and the names of metrics keep their escapes.
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
//! // A GET, but it runs a command.
//! let exec = Request::get("/api/v1/namespaces/default/pods/web-0/exec?command=reboot").body(())?;
//! assert!(!RequestInfo::of(&exec).is_read());
//! assert_eq!(RequestInfo::of(&exec).verb(), Verb::Connect);
//!
//! // The server would take this for the path above.
//! let odd = Request::get("/api/v1/namespaces/default/pods/web-0/%65xec?command=reboot").body(())?;
//! assert!(!RequestInfo::of(&odd).is_read());
//! assert_eq!(RequestInfo::of(&odd).verb(), Verb::Unknown);
//! # Ok::<(), http::Error>(())
//! ```

mod path;
mod query;
mod segment;
mod upgrade;
mod verb;

use std::borrow::Cow;
use std::fmt;

use http::{Method, Request, Uri};
use percent_encoding::percent_decode_str;

use self::path::{Connection, Kind, Parts, Prefix};
use self::segment::Segment;
pub(crate) use self::upgrade::is_built_in;
pub use self::verb::Verb;

/// What a request asks, borrowed from the request.
///
/// It is three words and [`Copy`]. Nothing is kept: each method that tells a part takes a pass over the path, and none
/// allocates but [`name`](Self::name) when there is something to decode. See the [module](self) for the rules.
#[derive(Clone, Copy, Debug)]
pub struct RequestInfo<'a> {
    method: &'a Method,
    uri: &'a Uri,
    upgrade: bool,
}

impl<'a> RequestInfo<'a> {
    /// What this request asks.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self::from_parts(request.method(), request.uri(), upgrade::is_asked_for(request.headers()))
    }

    /// The same from the parts of a request; `upgrade` says whether it has a `Connection: upgrade` header.
    #[must_use]
    pub fn from_parts(method: &'a Method, uri: &'a Uri, upgrade: bool) -> Self {
        Self { method, uri, upgrade }
    }

    /// Whether the request changes nothing, so that a follower may send it under any policy.
    #[must_use]
    pub fn is_read(&self) -> bool {
        // The method first: most requests that are no reads need no look at the path.
        self.has_reading_method() && self.reads(&Parts::of(self.uri.path()))
    }

    /// What it does.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.verb_on(&self.parts())
    }

    /// Whether it addresses a resource; `false` also for what does not parse.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        self.parts().kind == Kind::Resource
    }

    /// Whether the path could be taken apart. If not, the verb is [`Verb::Unknown`] and every part is absent. A path that
    /// is oddly spelled is taken apart only if the request is a read.
    #[must_use]
    pub fn is_parsed(&self) -> bool {
        self.parts().kind != Kind::Unparsed
    }

    /// The resource's API group; empty for the core group and when no resource is addressed.
    #[must_use]
    pub fn group(&self) -> &'a str {
        self.resource_parts().group
    }

    /// The version of the group; empty when no resource is addressed.
    #[must_use]
    pub fn version(&self) -> &'a str {
        self.resource_parts().version
    }

    /// The resource, in the plural as it stands in the path; empty when none is addressed. In the read of a metric it may
    /// hold escapes: `pubsub%7Cmessages`.
    #[must_use]
    pub fn resource(&self) -> &'a str {
        self.resource_parts().resource
    }

    /// The subresource as it stands in the path, as [`resource`](Self::resource); empty when none is addressed.
    #[must_use]
    pub fn subresource(&self) -> &'a str {
        self.resource_parts().subresource
    }

    /// The namespace, decoded. For a `namespaces` object it is the object's own name, as the server has it.
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

    /// The path as it stands in the URI.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.uri.path()
    }

    /// The query as it stands in the URI.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.uri.query()
    }

    /// Whether the request asks for a protocol upgrade.
    #[must_use]
    pub fn is_upgrade(&self) -> bool {
        self.upgrade
    }

    /// What is addressed, for messages: `resource[.group][/subresource]`, or the path when it is no resource.
    #[must_use]
    pub fn target(&self) -> impl fmt::Display + use<'a> {
        DisplayTarget(*self)
    }

    /// The request as rules see it; `None` when it addresses no resource, or may be something else than it looks like:
    ///
    /// - it is oddly spelled, or has a legacy verb in its path (there the server disagrees with the method);
    /// - it asks an aggregated API for a write and for an upgrade, and that API may grant either;
    /// - its method is none that opens an `exec`, `attach` or `portforward`.
    pub(crate) fn on_resource(&self) -> Option<ResourceRequest<'a>> {
        let parts = self.parts();
        let verb = self.verb_on(&parts);
        let trusted = match parts.connection {
            Connection::None => {
                !self.upgrade || verb == Verb::Connect || upgrade::is_answered_by_the_server(&parts)
            }
            Connection::Exec => matches!(*self.method, Method::GET | Method::POST),
            Connection::Proxy => true,
        };
        (trusted && parts.kind == Kind::Resource && !parts.odd && parts.prefix == Prefix::None)
            .then(|| ResourceRequest { verb, query: self.query(), parts })
    }

    /// An odd spelling is understood in a read alone: no rule and no closure shall take it for what it looks like.
    fn parts(&self) -> Parts<'a> {
        let parts = Parts::of(self.uri.path());
        let understood = !parts.odd || self.has_reading_method() && self.reads(&parts);
        if understood { parts } else { Parts::default() }
    }

    fn has_reading_method(&self) -> bool {
        matches!(*self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// Whether a reading method changes nothing on these parts.
    #[inline]
    fn reads(&self, parts: &Parts<'_>) -> bool {
        if self.upgrade && !upgrade::is_ignored(self.method, parts) {
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

    /// Absent parts when no resource is addressed.
    fn resource_parts(&self) -> Parts<'a> {
        Some(self.parts()).filter(|parts| parts.kind == Kind::Resource).unwrap_or_default()
    }

    fn verb_on(&self, parts: &Parts<'_>) -> Verb {
        verb::of(self.method, self.query(), self.upgrade, parts)
    }
}

/// A request on a resource, taken apart once for all the rules of a policy.
#[derive(Clone, Copy)]
pub(crate) struct ResourceRequest<'a> {
    pub(crate) verb: Verb,
    query: Option<&'a str>,
    parts: Parts<'a>,
}

impl<'a> ResourceRequest<'a> {
    /// Group, resource, subresource.
    pub(crate) fn target(&self) -> (&'a str, &'a str, &'a str) {
        (self.parts.group, self.parts.resource, self.parts.subresource)
    }

    pub(crate) fn namespace(&self) -> &'a str {
        self.parts.namespace
    }

    /// Compares the decoded name, without allocating.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        percent_decode_str(self.parts.name).eq(name.bytes())
    }

    /// Whether the query asks for a dry run. The server may ignore that.
    pub(crate) fn asks_for_dry_run(&self) -> bool {
        query::asks_for_dry_run(self.query)
    }
}

/// Allocates only if there is something to decode.
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

struct DisplayTarget<'a>(RequestInfo<'a>);

impl fmt::Display for DisplayTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.parts();
        if parts.kind != Kind::Resource {
            return f.write_str(self.0.path());
        }
        f.write_str(parts.resource)?;
        if !parts.group.is_empty() {
            write!(f, ".{}", parts.group)?;
        }
        if !parts.subresource.is_empty() {
            write!(f, "/{}", parts.subresource)?;
        }
        Ok(())
    }
}
