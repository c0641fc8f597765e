//! What a write asks for.

use crate::request::{RequestInfo, Verb};
use http::{Method, Uri};
use std::fmt;

/// What a write asks for: a request to the Kubernetes API, or any other write in its caller's words.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Attempt<'a> {
    /// A request to the Kubernetes API.
    Request(RequestInfo<'a>),
    /// Another write, for example a call of a cloud API. The code that made it has named it so.
    Labelled(&'static str),
}

/// The same, as an error keeps it. A request's parts are moved here, and parsed only when a caller asks.
#[derive(Clone)]
pub(crate) enum Refused {
    Request { method: Method, uri: Uri, upgrade: bool },
    Labelled(&'static str),
}

/// What is kept of an admitted write for its error. It is small, since the response future carries it.
pub trait Admitted: Copy {
    /// The verb of a request, or the label of another write.
    fn named(self) -> (Option<Verb>, Option<&'static str>);
}

impl Admitted for Verb {
    fn named(self) -> (Option<Verb>, Option<&'static str>) {
        (Some(self), None)
    }
}

impl Admitted for &'static str {
    fn named(self) -> (Option<Verb>, Option<&'static str>) {
        (None, Some(self))
    }
}

// === impl Attempt ===

impl<'a> Attempt<'a> {
    /// The request. None for another write.
    #[must_use]
    pub const fn request(self) -> Option<RequestInfo<'a>> {
        match self {
            Self::Request(request) => Some(request),
            Self::Labelled(_) => None,
        }
    }

    /// The label of a write that is no request to the Kubernetes API.
    #[must_use]
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Self::Request(_) => None,
            Self::Labelled(label) => Some(label),
        }
    }
}

/// `create deployments.apps "web" in namespace "shop"`, or the label.
impl fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = match self {
            Self::Labelled(label) => return f.write_str(label),
            Self::Request(request) => request,
        };
        write!(f, "{} {}", request.verb(), request.target())?;
        if let Some(name) = request.name() {
            write!(f, " {name:?}")?;
        }
        if let Some(namespace) = request.namespace() {
            write!(f, " in namespace {namespace:?}")?;
        }
        Ok(())
    }
}

// === impl Refused ===

/// Without the query: it is the caller's, and an error ends up in logs.
impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { method, uri, .. } => write!(f, "{method} {}", uri.path()),
            Self::Labelled(label) => write!(f, "{label:?}"),
        }
    }
}

impl Refused {
    pub(super) fn attempt(&self) -> Attempt<'_> {
        match self {
            Self::Request { method, uri, upgrade } => {
                Attempt::Request(RequestInfo::from_parts(method, uri, *upgrade))
            }
            Self::Labelled(label) => Attempt::Labelled(label),
        }
    }
}
