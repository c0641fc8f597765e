//! A path, taken apart as the API server does it, or refused.
//!
//! The server decodes the path before it splits it, takes no offence at odd spellings, and cleans nothing. Here a path
//! is taken apart only if it is spelled as an ordinary client spells it, because then both ways give the same answer.

use super::segment::{Segment, Segments};

/// What a path addresses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Resource(ResourcePath<'a>),
    NonResource,
    /// Not spelled as a client would spell it: it may address anything.
    Unparsed,
}

/// The parts of a resource's path; the empty string stands for an absent one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResourcePath<'a> {
    pub(super) prefix: Prefix,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: &'a str,
    pub(super) resource: &'a str,
    /// As it stands in the path: the only part that may hold percent-encoded bytes.
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
}

/// The legacy verbs that stand in the path before the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    None,
    Watch,
    Proxy,
}

pub(super) fn parse(path: &str) -> Target<'_> {
    path.strip_prefix('/').and_then(|rest| root(Segments::of(rest))).unwrap_or(Target::Unparsed)
}

fn root(mut segments: Segments<'_>) -> Option<Target<'_>> {
    if segments.at_end() {
        return Some(Target::NonResource);
    }
    let first = segments.next()?;
    match first.text() {
        "api" => {
            if segments.at_end() {
                return Some(Target::NonResource);
            }
            // The core group has had no other version since Kubernetes 1.0.
            let version = segments.structural().filter(|version| *version == "v1")?;
            versioned("", version, segments)
        }
        "apis" => {
            if segments.at_end() {
                return Some(Target::NonResource);
            }
            let group = segments.structural()?;
            if segments.at_end() {
                return Some(Target::NonResource);
            }
            let version = segments.structural()?;
            versioned(group, version, segments)
        }
        _ => non_resource(first, segments),
    }
}

fn versioned<'a>(group: &'a str, version: &'a str, segments: Segments<'a>) -> Option<Target<'a>> {
    if segments.at_end() {
        return Some(Target::NonResource);
    }
    resource(group, version, segments).map(Target::Resource)
}

fn resource<'a>(group: &'a str, version: &'a str, mut segments: Segments<'a>) -> Option<ResourcePath<'a>> {
    let mut first = segments.structural()?;
    let prefix = match first {
        "watch" => Prefix::Watch,
        "proxy" => Prefix::Proxy,
        _ => Prefix::None,
    };
    if prefix != Prefix::None {
        first = segments.structural()?;
    }
    let mut path =
        ResourcePath { prefix, group, version, namespace: "", resource: first, name: "", subresource: "" };

    if first == "namespaces"
        && let Some(namespace) = segments.next()
    {
        path.namespace = namespace.structural()?;
        match segments.next() {
            None => path.name = path.namespace,
            Some(next) => match next.structural()? {
                own @ ("status" | "finalize") => {
                    path.name = path.namespace;
                    path.subresource = own;
                }
                resource => path.resource = resource,
            },
        }
    }
    if path.name.is_empty()
        && let Some(name) = segments.next()
    {
        path.name = name.data()?;
        if let Some(subresource) = segments.next() {
            path.subresource = subresource.structural()?;
        }
    }
    if prefix == Prefix::Proxy {
        // Below this prefix the server knows no subresource: what follows the name is the backend's.
        path.subresource = "";
    }
    let whole = if path.subresource == "proxy" || prefix == Prefix::Proxy {
        segments.all_data()
    } else {
        segments.is_used_up()
    };
    whole.then_some(path)
}

fn non_resource<'a>(first: Segment<'a>, mut segments: Segments<'a>) -> Option<Target<'a>> {
    let start = first.text().get(..3);
    if start.is_some_and(|start| start.eq_ignore_ascii_case("api")) {
        return None; // `/API/v1`, `/apiv1`: meant for a resource, perhaps
    }
    let mut segment = first;
    loop {
        segment.data().filter(|_| !segment.is_escaped())?;
        if segments.at_end() {
            return Some(Target::NonResource);
        }
        segment = segments.next()?;
    }
}
