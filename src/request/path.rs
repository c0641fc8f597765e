//! Parses a path as the API server does, or refuses it.
//!
//! The server decodes the path before it splits it. It accepts odd spellings and cleans nothing. This parser accepts
//! a path only if its meaning is clear: it is spelled as an ordinary client spells it, or oddly ([`Parts::odd`]) but
//! with only one meaning.

use super::segment::{Segment, Segments};

/// What a path addresses. Only a [`Kind::Resource`] has meaningful parts. A missing part is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) kind: Kind,
    /// An ordinary client does not spell the path so. A read may, but no exemption covers it.
    pub(super) odd: bool,
    pub(super) prefix: Prefix,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: &'a str,
    pub(super) resource: &'a str,
    /// As in the path, so it may hold percent-encoded bytes.
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
    pub(super) connection: Connection,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// No client spells a path so: it may address anything.
    #[default]
    Unparsed,
    NonResource,
    Resource,
}

/// The legacy verbs that can come before the resource in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Prefix {
    #[default]
    None,
    Watch,
    Proxy,
}

/// Subresources that are connections, in any group. Aggregated APIs use these names for the same things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Connection {
    #[default]
    None,
    /// `proxy`: a read through it is a read.
    Proxy,
    /// `exec`, `attach`, `portforward`: they can change something even with `GET`.
    Exec,
}

impl<'a> Parts<'a> {
    #[inline]
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
            self.odd = !segments.skip("v1");
            self.version = if self.odd { segments.structural()? } else { "v1" };
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
        self.resource = if segments.skip("namespaces") { "namespaces" } else { self.word(segments.next())? };
        if self.resource == "namespaces" && !segments.at_end() {
            let namespace = segments.next();
            self.namespace = namespace.structural().or_else(|| self.odd_name(namespace))?;
            if segments.at_end() {
                self.name = self.namespace;
                return self.end(segments);
            }
            self.resource = self.word(segments.next())?;
            if matches!(self.resource, "status" | "finalize") {
                (self.resource, self.name, self.subresource) = ("namespaces", self.namespace, self.resource);
            }
        }
        if self.name.is_empty() && !segments.at_end() {
            let name = segments.next();
            self.name = name.data().or_else(|| self.odd_name(name))?;
            if !segments.at_end() {
                self.subresource = self.word(segments.next())?;
            }
        }
        self.connection = match self.subresource {
            _ if self.prefix == Prefix::Proxy => {
                // The server knows no subresource here. The rest of the path belongs to the backend.
                self.subresource = "";
                Connection::Proxy
            }
            "proxy" => Connection::Proxy,
            "exec" | "attach" | "portforward" => Connection::Exec,
            _ => Connection::None,
        };
        self.end(segments)
    }

    #[inline]
    fn end(&mut self, segments: Segments<'a>) -> Option<Kind> {
        if segments.is_used_up() { Some(Kind::Resource) } else { self.tail(segments) }
    }

    /// Parses what follows a subresource: the path of a proxy's backend, or segments that the server does not
    /// interpret.
    #[inline(never)]
    fn tail(&mut self, mut segments: Segments<'a>) -> Option<Kind> {
        let backend = self.connection == Connection::Proxy;
        while !segments.at_end() {
            let segment = segments.next();
            if !backend || segment.data().is_none() {
                self.odd = true;
                let understood = if backend { segment.is_odd_backend_path() } else { segment.is_odd_tail() };
                understood.then_some(())?;
            }
        }
        // A backend's path may end in a slash.
        self.odd |= !segments.is_used_up() && !backend;
        Some(Kind::Resource)
    }

    #[inline]
    fn word(&mut self, segment: Segment<'a>) -> Option<&'a str> {
        segment.structural().or_else(|| {
            self.odd = true;
            segment.odd_word()
        })
    }

    fn odd_name(&mut self, segment: Segment<'a>) -> Option<&'a str> {
        self.odd = true;
        segment.odd_name()
    }
}

fn non_resource(mut segments: Segments<'_>) -> Option<Kind> {
    let first = segments.next();
    let start = first.text.as_bytes().get(..3);
    if first.is_escaped() || start.is_some_and(|start| start.eq_ignore_ascii_case(b"api")) {
        return None; // `/API/v1`, `/apiv1`, `/%61pi/v1`: perhaps meant as a resource
    }
    let mut segment = first;
    loop {
        if segment.data().is_none() {
            segment.odd_name()?;
        }
        if segments.at_end() {
            return Some(Kind::NonResource);
        }
        segment = segments.next();
    }
}
