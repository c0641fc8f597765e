//! What a lease call can fail with.

use crate::api::{CallError, Failure};
use http::StatusCode;
use std::{error::Error, fmt, time::Duration};

/// A lease call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrLock {
    kind: ErrLockKind,
    message: String,
}

/// In what way a lease call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrLockKind {
    /// Another client was faster: the resource version is not the newest, or the lease exists by now.
    Conflict,
    /// Not there: the lease on an update, the namespace on a create.
    NotFound,
    /// The API server does not know this candidate: look at its token or certificate.
    Unauthorized,
    /// The API server does not let this candidate: look at its Role.
    Forbidden,
    /// A watch from a version that the API server no longer has.
    Gone,
    /// No answer within the call timeout.
    Timeout,
    /// The API server could not be reached, or the connection broke.
    Unreachable,
    /// An answer that makes no sense: no lease, not JSON, too long.
    Garbage,
    /// Any other refusal: too many requests, an internal error, an invalid lease.
    Refused,
}

// === impl ErrLock ===

impl ErrLock {
    /// An error of this kind; `message` says what happened, for a person.
    pub fn new(kind: ErrLockKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn timeout(after: Duration) -> Self {
        CallError::timeout(after).into()
    }

    /// In what way the call failed.
    #[must_use]
    pub const fn kind(&self) -> ErrLockKind {
        self.kind
    }
}

impl From<CallError> for ErrLock {
    fn from(error: CallError) -> Self {
        let kind = match error.failure {
            Failure::Status(status) => ErrLockKind::of(status),
            Failure::Timeout => ErrLockKind::Timeout,
            Failure::Unreachable => ErrLockKind::Unreachable,
            Failure::Garbage => ErrLockKind::Garbage,
            Failure::Unsendable => ErrLockKind::Refused,
        };
        Self::new(kind, error.message)
    }
}

impl ErrLockKind {
    /// What a status that is no success means.
    pub(super) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::GONE => Self::Gone,
            _ => Self::Refused,
        }
    }

    /// The word for it in log fields.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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
        }
    }

    /// What a person can do about a lease call that keeps failing so.
    pub(crate) const fn advice(self) -> Option<&'static str> {
        match self {
            Self::NotFound => Some("create the lease's namespace"),
            Self::Unauthorized => Some("look at this candidate's token or certificate"),
            Self::Forbidden => {
                Some("grant it get, create, update and watch on leases in coordination.k8s.io, by a Role")
            }
            Self::Timeout | Self::Unreachable => Some("look at the API server and at the way to it"),
            Self::Conflict | Self::Gone | Self::Garbage | Self::Refused => None,
        }
    }
}

impl fmt::Display for ErrLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)
    }
}

impl Error for ErrLock {}
