//! The errors of a call.

use crate::request::leaves_open;
use http::StatusCode;
use std::{error::Error, fmt, time::Duration};

/// A call to the API server that failed, for a lease or for an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrLock {
    kind: ErrLockKind,
    message: String,
    /// Whether the client itself has ended: its task has panicked, or its runtime is gone.
    client_is_dead: bool,
    status: Option<StatusCode>,
    /// How long the API server asks to wait before the next call.
    retry_after: Option<Duration>,
}

/// The kinds of failed lease calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrLockKind {
    /// Another client was faster: the resource version is not the newest, or the lease exists already.
    Conflict,
    /// Not found: an update found no lease, or a create found no namespace.
    NotFound,
    /// The API server does not know this candidate. Check its token or certificate.
    Unauthorized,
    /// The API server does not permit this. Check this candidate's Role.
    Forbidden,
    /// The watch asked for a version that the API server no longer has.
    Gone,
    /// The API server did not answer within the call timeout.
    Timeout,
    /// The client could not reach the API server, or the connection broke.
    Unreachable,
    /// The answer makes no sense: it is not a lease, not JSON, or too long.
    Garbage,
    /// The API server refused the call for another reason: too many requests, an internal error, an invalid lease.
    Refused,
    /// The call has succeeded, and a [layer](crate::election::LockLayer) of the lock does not let the election know what it
    /// has written. The layer tells why by a [`Trouble`](crate::election::Trouble) of its own.
    Withheld,
}

// === impl ErrLock ===

impl ErrLock {
    /// Makes an error of this kind. `message` tells a person what happened.
    pub fn new(kind: ErrLockKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), client_is_dead: false, status: None, retry_after: None }
    }

    pub(crate) fn timeout(after: Duration) -> Self {
        Self::new(ErrLockKind::Timeout, format!("no answer within {after:?}"))
    }

    /// The API server's refusal.
    pub(crate) fn refusal(status: StatusCode, retry_after: Option<Duration>, message: &str) -> Self {
        let message = format!("{}: {message}", status.as_u16());
        Self { status: Some(status), retry_after, ..Self::new(ErrLockKind::of(status), message) }
    }

    pub(crate) fn of_dead_client(self) -> Self {
        Self { client_is_dead: true, ..self }
    }

    pub(super) const fn client_is_dead(&self) -> bool {
        self.client_is_dead
    }

    /// How long the API server asks to wait before the next call.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether a write with this error was certainly not carried out.
    pub(crate) fn is_certain(&self) -> bool {
        use ErrLockKind::{Conflict, Forbidden, NotFound, Unauthorized};
        let refused = |status: StatusCode| status.is_client_error() && !leaves_open(status);
        self.status.is_some_and(refused)
            || matches!(self.kind, Conflict | Forbidden | NotFound | Unauthorized)
    }

    /// The kind of the failure.
    #[must_use]
    pub const fn kind(&self) -> ErrLockKind {
        self.kind
    }
}

impl ErrLockKind {
    /// The kind that belongs to a status other than success.
    pub(crate) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::GONE => Self::Gone,
            _ => Self::Refused,
        }
    }

    /// The word for this kind in log fields.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::NotFound => "not found",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Gone => "gone",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Garbage => "garbage",
            Self::Refused => "refused",
            Self::Withheld => "withheld",
        }
    }

    /// What a user can do if lease calls keep failing with this kind.
    pub(crate) const fn advice(self) -> Option<&'static str> {
        match self {
            Self::NotFound => {
                Some("create the lease's namespace; an API server before Kubernetes 1.14 has no such leases")
            }
            Self::Unauthorized => Some("check this candidate's token or certificate"),
            Self::Forbidden => {
                Some("grant it get, create, update and watch on leases in coordination.k8s.io, by a Role")
            }
            Self::Timeout | Self::Unreachable => Some("check the API server and the network to it"),
            Self::Conflict | Self::Gone | Self::Garbage | Self::Refused | Self::Withheld => None,
        }
    }
}

impl fmt::Display for ErrLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)
    }
}

impl Error for ErrLock {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_a_user_can_mend_says_how() {
        for (status, word, advice) in [
            (401, "unauthorized", "check this candidate's token or certificate"),
            (403, "forbidden", "by a Role"),
            (404, "not found", "create the lease's namespace"),
        ] {
            let kind = ErrLockKind::of(StatusCode::from_u16(status).unwrap());
            assert_eq!(kind.as_str(), word);
            assert!(kind.advice().unwrap().contains(advice), "{kind:?}");
        }
    }
}
