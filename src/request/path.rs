//! A path, taken apart as the API server does it, or refused.
//!
//! The server decodes the path before it splits it, takes no offence at odd spellings, and cleans nothing. Here a path
//! is taken apart only if it is spelled as an ordinary client spells it, because then both ways give the same answer.

use super::segment::Segments;

/// What a path addresses. The parts mean something for a [`Kind::Resource`] only; what is absent is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) kind: Kind,
    pub(super) prefix: Prefix,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: &'a str,
    pub(super) resource: &'a str,
    /// As it stands in the path: the only part that may hold percent-encoded bytes.
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
    pub(super) connection: Connection,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not spelled as a client would spell it: it may address anything.
    #[default]
    Unparsed,
    NonResource,
    Resource,
}

/// The legacy verbs that stand in the path before the resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Prefix {
    #[default]
    None,
    Watch,
    Proxy,
}

/// Subresources that are connections, in any group: aggregated APIs use these names for the same things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Connection {
    #[default]
    None,
    /// `proxy`: reads through it are reads.
    Proxy,
    /// `exec`, `attach`, `portforward`: they can change something even when opened with `GET`.
    Exec,
}

impl<'a> Parts<'a> {
    pub(super) fn of(path: &'a str) -> Self {
        let mut parts = Self::default();
        parts.kind = Segments::of(path).and_then(|segments| parts.root(segments)).unwrap_or_default();
        parts
    }

    fn root(&mut self, mut segments: Segments<'a>) -> Option<Kind> {
        if segments.at_end() {
            return Some(Kind::NonResource);
        }
        if segments.skip("api") {
            if segments.at_end() {
                return Some(Kind::NonResource);
            }
            // The core group has had no other version since Kubernetes 1.0.
            self.version = segments.skip("v1").then_some("v1")?;
        } else if segments.skip("apis") {
            if segments.at_end() {
                return Some(Kind::NonResource);
            }
            self.group = segments.structural()?;
            if segments.at_end() {
                return Some(Kind::NonResource);
            }
            self.version = segments.structural()?;
        } else {
            return non_resource(segments);
        }
        if segments.at_end() {
            return Some(Kind::NonResource);
        }
        self.resource(segments)
    }

    fn resource(&mut self, mut segments: Segments<'a>) -> Option<Kind> {
        if segments.skip("watch") {
            self.prefix = Prefix::Watch;
        } else if segments.skip("proxy") {
            self.prefix = Prefix::Proxy;
        }
        self.resource = if segments.skip("namespaces") { "namespaces" } else { segments.structural()? };
        if self.resource == "namespaces" && !segments.is_used_up() {
            self.namespace = segments.structural()?;
            if segments.is_used_up() {
                self.name = self.namespace;
                return Some(Kind::Resource);
            }
            self.resource = segments.structural()?;
            if matches!(self.resource, "status" | "finalize") {
                (self.resource, self.name, self.subresource) = ("namespaces", self.namespace, self.resource);
            }
        }
        if self.name.is_empty() && !segments.is_used_up() {
            self.name = segments.next().data()?;
            if !segments.is_used_up() {
                self.subresource = segments.structural()?;
            }
        }
        self.connection = match self.subresource {
            _ if self.prefix == Prefix::Proxy => {
                // The server knows no subresource here: what follows the name is the backend's.
                self.subresource = "";
                Connection::Proxy
            }
            "proxy" => Connection::Proxy,
            "exec" | "attach" | "portforward" => Connection::Exec,
            _ => Connection::None,
        };
        let whole = segments.is_used_up() || self.connection == Connection::Proxy && segments.all_data();
        whole.then_some(Kind::Resource)
    }
}

fn non_resource(mut segments: Segments<'_>) -> Option<Kind> {
    let first = segments.next();
    let start = first.text.get(..3);
    if start.is_some_and(|start| start.eq_ignore_ascii_case("api")) {
        return None; // `/API/v1`, `/apiv1`: meant for a resource, perhaps
    }
    let mut segment = first;
    loop {
        segment.data().filter(|_| !segment.is_escaped())?;
        if segments.at_end() {
            return Some(Kind::NonResource);
        }
        segment = segments.next();
    }
}
