//! The errors of a call.

use super::advice::Cause;
use crate::{one_line::one_line, request::leaves_open};
use http::StatusCode;
use std::{error::Error, fmt, sync::Arc, time::Duration};

/// A call to the API server that failed, for a lease or for another object. Its text is one line.
///
/// [`kind`](Self::kind) says whether the API server may have carried out a write, and [`explain`](Self::explain) says what
/// a person can do. This error does not end an election. The election calls again, so a [`Lock`](super::Lock) need not
/// repeat calls.
///
/// It is safe to repeat a call of a lock, because a lock writes by compare-and-swap. If the API server carried out the first
/// attempt, the second attempt fails with [`Conflict`](ErrLockKind::Conflict). For a call for another object, this may not
/// be true.
#[derive(Clone, Debug)]
pub struct ErrLock {
    kind: ErrLockKind,
    message: String,
    /// What is known of the cause, beyond the kind of the error.
    cause: Option<Cause>,
    source: Option<Arc<dyn Error + Send + Sync>>,
    /// Whether the client itself has ended: its task has panicked, or its runtime is gone.
    client_is_dead: bool,
    status: Option<StatusCode>,
    /// How long the API server asks to wait before the next call.
    retry_after: Option<Duration>,
}

/// The kinds of failed calls. If the call was a write, the kind also says what has become of the write:
///
/// - `Conflict`, `NotFound`, `Unauthenticated`, `Forbidden`: the API server has refused the write, or the client has not
///   sent it.
/// - `Unreachable`: the client has not sent the write.
/// - `Timeout`, `BadAnswer`, `Refused`: the API server may have carried out the write, or may still do so.
/// - `Withheld`: the API server has carried out the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrLockKind {
    /// Another client was faster: the resource version is not the newest, or the lease exists already.
    Conflict,
    /// Not found: an update found no lease, or a create found no namespace.
    NotFound,
    /// The client and the API server do not accept each other. The server does not know the client's token or certificate, the
    /// client has no credentials because a plugin fails or a file cannot be read, or TLS fails.
    Unauthenticated,
    /// The API server does not permit this, or an admission plugin refuses it.
    Forbidden,
    /// There was no answer within the call timeout.
    Timeout,
    /// There is no connection to the API server: its name has no address, nothing listens there, or a proxy on the way makes
    /// no connection.
    Unreachable,
    /// The answer cannot be used: the connection broke before the answer was complete, or the answer is not a lease, not
    /// JSON, or too long.
    BadAnswer,
    /// The API server refused the call for another reason: too many requests, an internal error, an invalid lease, or a watch
    /// from a version that the server no longer has.
    Refused,
    /// The call has succeeded, but a [layer](crate::extension::LockLayer) of the lock does not pass the answer on to the
    /// election, so the gate stays closed. The layer says why with a [`Trouble`](crate::extension::Trouble) of its own.
    Withheld,
}

// === impl ErrLock ===

impl ErrLock {
    /// Makes an error of this kind. `message` tells a person what happened. It becomes [one line](crate::extension::one_line).
    pub fn new(kind: ErrLockKind, message: impl AsRef<str>) -> Self {
        let message = one_line(message.as_ref());
        Self {
            kind,
            message,
            cause: None,
            source: None,
            client_is_dead: false,
            status: None,
            retry_after: None,
        }
    }

    /// The error of a call whose connection broke before the answer was complete.
    #[must_use]
    pub fn cut_off(message: impl AsRef<str>) -> Self {
        Self::new(ErrLockKind::BadAnswer, message).because(Some(Cause::CutOff))
    }

    pub(crate) fn because(self, cause: Option<Cause>) -> Self {
        Self { cause, ..self }
    }

    pub(crate) fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// The error of a call that had no answer within this time.
    #[must_use]
    pub fn timeout(after: Duration) -> Self {
        Self::new(ErrLockKind::Timeout, format!("no answer within {after:?}"))
    }

    /// The error of a call that the API server refused. `message` is the API server's own text.
    pub(crate) fn refusal(status: StatusCode, retry_after: Option<Duration>, message: &str) -> Self {
        let message = one_line(message);
        let said = if message.is_empty() {
            let name = status.canonical_reason().unwrap_or("unknown");
            format!("{}: {name}, with an empty answer", status.as_u16())
        } else {
            format!("{}: {message}", status.as_u16())
        };
        let cause = Cause::of(status, &message);
        Self { cause, status: Some(status), retry_after, ..Self::new(ErrLockKind::of(status), said) }
    }

    pub(crate) fn of_dead_client(self) -> Self {
        Self { client_is_dead: true, ..self }
    }

    pub(super) const fn client_is_dead(&self) -> bool {
        self.client_is_dead
    }

    /// The status of the answer, if there was one.
    pub(crate) const fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// How long the API server asks to wait before the next call.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the server has certainly not carried out a write with this error: the client did not send it, or the server
    /// refused it with a status that does not [leave the outcome open](crate::extension::leaves_open). For some values of
    /// `Accept`, the server answers 400 or 406 after it has stored the object, but no lease call sends such a value. If the
    /// error has no status, the kind decides. `Unreachable` is then not certain: that a connection failed is too weak a proof.
    pub(crate) fn is_certain(&self) -> bool {
        use ErrLockKind::{Conflict, Forbidden, NotFound, Unauthenticated};
        match self.status() {
            Some(status) => status.is_client_error() && !leaves_open(status),
            None => matches!(self.kind, Conflict | Forbidden | NotFound | Unauthenticated),
        }
    }

    /// The kind of the failure.
    #[must_use]
    pub const fn kind(&self) -> ErrLockKind {
        self.kind
    }

    /// The text of the error, and what a person can do if calls keep failing in this way. The advice depends on the kind, and
    /// on what the API server says of the cause. If the cause is a missing Role, the advice is `role`, which says what a Role
    /// has to grant.
    ///
    /// ```
    /// use kube_leader_gate::lease::{ErrLock, ErrLockKind};
    ///
    /// let error = ErrLock::new(ErrLockKind::Unauthenticated, "Unauthorized");
    /// let told = error.explain("grant it get on leases, by a Role");
    /// assert_eq!(told, "unauthenticated: Unauthorized. To do: check the token or certificate");
    /// ```
    #[must_use]
    pub fn explain(&self, role: &str) -> String {
        let told = self.to_string();
        match self.advice(role) {
            Some(advice) => format!("{}. To do: {advice}", told.trim_end_matches('.')),
            None => told,
        }
    }

    fn advice<'a>(&self, role: &'a str) -> Option<&'a str> {
        self.cause.map(|cause| cause.advice(role)).or_else(|| self.kind.advice())
    }
}

impl ErrLockKind {
    /// The kind that belongs to a status other than success.
    pub(crate) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::UNAUTHORIZED => Self::Unauthenticated,
            StatusCode::FORBIDDEN => Self::Forbidden,
            _ => Self::Refused,
        }
    }

    /// The word for this kind in log fields and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::NotFound => "not found",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::BadAnswer => "bad answer",
            Self::Refused => "refused",
            Self::Withheld => "withheld",
        }
    }

    /// What to do if no cause is known.
    const fn advice(self) -> Option<&'static str> {
        match self {
            Self::NotFound => Some("check the namespace, and the URL of the API server"),
            Self::Unauthenticated => Some("check the token or certificate"),
            Self::Forbidden => Some(
                "look for a proxy on the way, or an admission plugin of the API server; it is no missing Role",
            ),
            Self::Timeout => Some(
                "check the API server and the network to it; if its answers take that long, choose a timing with a longer \
                 renew deadline, or, if the call timeout is 5s, set a longer one: the fourth number of a timing, in \
                 seconds (137/107/26/10)",
            ),
            Self::Unreachable => {
                Some("check that the API server runs, its address and port, and the network to it")
            }
            Self::BadAnswer => Some("check that the URL is the API server's, and not another server's"),
            Self::Conflict => {
                Some("find the program that changes this object again and again, in the audit log")
            }
            Self::Refused | Self::Withheld => None,
        }
    }
}

impl fmt::Display for ErrLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)
    }
}

impl Error for ErrLock {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = "grant it, by a Role";

    /// Messages of a real API server.
    #[test]
    fn advice_is_about_the_cause_that_the_message_names() {
        for (status, message, advice) in [
            (
                403,
                r#"leases.coordination.k8s.io "x" is forbidden: User "a" cannot get resource "leases" in API group "c" in the namespace "b""#,
                ROLE,
            ),
            (
                403,
                r#"leases.coordination.k8s.io is forbidden: User "system:anonymous" cannot create resource "leases""#,
                "none that it knows",
            ),
            (
                403,
                r#"leases.coordination.k8s.io "x" is forbidden: unable to create new content in namespace a because it is being terminated"#,
                "use another namespace",
            ),
            (
                403,
                r#"leases.coordination.k8s.io "x" is forbidden: exceeded quota: q, requested: count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=0, limited: count/leases.coordination.k8s.io=0"#,
                "ResourceQuota",
            ),
            (
                403,
                r#"admission webhook "w.example.com" denied the request: no leases"#,
                "exempt it from the webhook",
            ),
            (
                400,
                r#"admission webhook "w.example.com" denied the request: no leases"#,
                "exempt it from the webhook",
            ),
            (
                500,
                r#"Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w": EOF"#,
                "failurePolicy",
            ),
            (
                422,
                "leases.coordination.k8s.io \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no",
                "exempt it from the policy",
            ),
            (403, "<html>Access denied</html>", "look for a proxy on the way"),
            (404, r#"namespaces "a" not found"#, "create the namespace"),
            (404, "404 page not found", "lacks the kind"),
            (401, "Unauthorized", "check the token or certificate"),
            (302, "a redirect", "itself"),
            (429, "Too many requests, please try again later.", "PriorityLevelConfiguration"),
            (502, "<html> <h1>502 Bad Gateway</h1>", "load balancer"),
        ] {
            let error = ErrLock::refusal(StatusCode::from_u16(status).unwrap(), None, message);
            let given = error.advice(ROLE).unwrap();
            assert!(given.contains(advice), "{status} {message}: {given}");
        }
        let error = ErrLock::refusal(StatusCode::UNPROCESSABLE_ENTITY, None, "spec: Invalid value");
        assert_eq!(error.advice(ROLE), None);
    }

    #[test]
    fn empty_answer_is_named() {
        let error = ErrLock::refusal(StatusCode::SERVICE_UNAVAILABLE, None, " \n");
        assert_eq!(error.to_string(), "refused: 503: Service Unavailable, with an empty answer");
    }
}
