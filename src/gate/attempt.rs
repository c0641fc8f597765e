//! What a write asks for.

use super::guarded::ErrGuarded;
use crate::request::{RequestInfo, Verb};
use http::{Method, Uri};
use std::{error::Error, fmt};

/// What a write asks for: a request to the Kubernetes API, or any other write, with a label that its caller has chosen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Attempt<'a> {
    /// A request to the Kubernetes API.
    Request(RequestInfo<'a>),
    /// Another write, for example a call of a cloud API. This is its label.
    Labelled(&'static str),
}

/// The [`Attempt`] of a refused write, as the error keeps it. The gate moves the parts of the request here, and the error parses
/// them only when a caller asks.
#[derive(Clone)]
pub(crate) enum Refused {
    Request { method: Method, uri: Uri, upgrade: bool },
    Labelled(&'static str),
}

/// What the gate keeps of an admitted write until its answer, which is a `T`. It is small, since the response future contains
/// it.
pub trait Admitted<T>: Copy {
    /// The error that the caller gets if the write fails.
    type Error: From<Box<dyn Error + Send + Sync>>;

    /// The verb of a request, or the label of another write.
    fn name(self) -> (Option<Verb>, Option<&'static str>);

    /// Whether the outcome of the write is known from its answer.
    fn is_settled_by(self, answer: &T) -> bool;
}

impl<T> Admitted<T> for &'static str {
    type Error = ErrGuarded;

    fn name(self) -> (Option<Verb>, Option<&'static str>) {
        (None, Some(self))
    }

    fn is_settled_by(self, _: &T) -> bool {
        true
    }
}

// === impl Attempt ===

impl<'a> Attempt<'a> {
    /// The request. None for another write.
    #[must_use]
    pub const fn request(&self) -> Option<&RequestInfo<'a>> {
        match self {
            Self::Request(request) => Some(request),
            Self::Labelled(_) => None,
        }
    }

    /// The verb of the request. None for another write.
    #[must_use]
    pub fn verb(&self) -> Option<Verb> {
        match self {
            Self::Request(request) => Some(request.verb()),
            Self::Labelled(_) => None,
        }
    }

    /// The label of a write that is no request to the Kubernetes API.
    #[must_use]
    pub const fn label(&self) -> Option<&'static str> {
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

/// Shows no query: the query may contain data of the caller, and errors are written into logs.
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
