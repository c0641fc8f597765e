//! Why a cache cannot be compared with what the API server has stored.

use crate::lease::ErrLock;
use http::StatusCode;
use std::{error::Error, fmt};

/// A cache cannot be compared with what the API server has stored; see [`caught_up`](super::caught_up()). The text says what
/// to do.
#[derive(Clone, Debug)]
pub struct ErrCaughtUp {
    /// The name of the kind in URLs, with its group.
    pub(super) resource: String,
    pub(super) why: Why,
}

#[derive(Clone, Debug)]
pub(super) enum Why {
    /// There was no list.
    List(ErrLock),
    /// This version is not a number.
    Version(String),
    /// The list is older than what the cache showed before.
    Older { version: u64, cached: u64 },
}

// === impl ErrCaughtUp ===

impl ErrCaughtUp {
    /// Whether the API server answers 404 to the list: it does not know this kind, so it has no object of it. If your program
    /// applies the kind itself once it leads, let [`open_when`](crate::Election::open_when) pass in this case, or no replica
    /// ever leads in a new cluster. The Role has to permit the list of this kind; if it does not, the API server answers 403.
    /// (If there are several API servers, each learns of a new kind a moment later.)
    ///
    /// ```
    /// use kube_leader_gate::runtime::ErrCaughtUp;
    ///
    /// fn opens(caught_up: Result<(), ErrCaughtUp>) -> Result<(), ErrCaughtUp> {
    ///     match caught_up {
    ///         Err(error) if error.is_unknown_kind() => Ok(()),
    ///         outcome => outcome,
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn is_unknown_kind(&self) -> bool {
        matches!(&self.why, Why::List(error) if error.status() == Some(StatusCode::NOT_FOUND))
    }

    /// Whether it helps to ask again.
    pub(super) fn may_pass(&self) -> bool {
        let Why::List(error) = &self.why else { return matches!(self.why, Why::Older { .. }) };
        let asks_again = [StatusCode::TOO_MANY_REQUESTS, StatusCode::GONE];
        !error.is_certain() || error.status().is_some_and(|status| asks_again.contains(&status))
    }
}

impl fmt::Display for ErrCaughtUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, why } = self;
        match why {
            Why::List(_) if self.is_unknown_kind() => write!(
                f,
                "{resource} cannot be listed: the API server does not know this kind. To do: install its \
                 CustomResourceDefinition; if this program applies it itself, see ErrCaughtUp::is_unknown_kind"
            ),
            Why::List(error) => {
                let role = format!("grant this process list on {resource}, by a Role");
                write!(f, "{resource} cannot be listed: {}", error.explain(&role))
            }
            Why::Version(version) => write!(
                f,
                "the resource version {version:?} of {resource} is not a number, so the cache cannot be compared with it; do not \
                 name this cache in open_when"
            ),
            Why::Older { version, cached } => write!(
                f,
                "the API server lists {resource} of version {version}, but the cache shows version {cached} already; if a backup \
                 was restored, restart this process"
            ),
        }
    }
}

impl Error for ErrCaughtUp {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Why::List(error) = &self.why { Some(error) } else { None }
    }
}
