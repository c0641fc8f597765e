//! The errors of a call to the API server.

use http::{StatusCode, Uri, uri::Authority};
use kube_client::{Error, client::AuthError};
use std::{fmt, time::Duration};

/// A failed call, with a message for a person.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    pub(crate) failure: Failure,
    pub(crate) message: String,
}

/// The kinds of failed calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The API server answered with this status, which is not a success.
    Status(StatusCode),
    /// The API server did not answer in time.
    Timeout,
    /// The request did not reach the API server, or the connection broke.
    Unreachable,
    /// The answer makes no sense: it is not JSON, or too long.
    Garbage,
    /// kube-client could not make the request.
    Unsendable,
    /// The client itself has ended: its task has panicked, or its runtime is gone.
    Dead,
}

// === impl CallError ===

impl CallError {
    pub(crate) fn new(failure: Failure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into() }
    }

    pub(crate) fn timeout(after: Duration) -> Self {
        Self::new(Failure::Timeout, format!("no answer within {after:?}"))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.failure.as_str(), self.message)
    }
}

// === impl Failure ===

impl Failure {
    /// The word for this failure in log fields.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Status(StatusCode::CONFLICT) => "conflict",
            Self::Status(StatusCode::NOT_FOUND) => "not found",
            Self::Status(StatusCode::UNAUTHORIZED) => "unauthorized",
            Self::Status(StatusCode::FORBIDDEN) => "forbidden",
            Self::Status(StatusCode::GONE) => "gone",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Dead => "dead client",
            Self::Garbage => "garbage",
            Self::Status(_) | Self::Unsendable => "refused",
        }
    }
}

/// The same error without what must not be shown: the user part of a proxy's URL, and what a credential plugin was given
/// and has printed.
pub(crate) fn without_secrets(mut error: Error) -> Error {
    match &mut error {
        Error::ProxyProtocolUnsupported { proxy_url } | Error::ProxyProtocolDisabled { proxy_url, .. } => {
            let mut parts = proxy_url.clone().into_parts();
            let host = |it: Authority| it.as_str().rsplit('@').next()?.parse().ok();
            parts.authority = parts.authority.and_then(host);
            **proxy_url = Uri::from_parts(parts).unwrap_or_default();
        }
        Error::Auth(error) => hide_secrets(error),
        Error::Service(error) => {
            if let Some(error) = error.downcast_mut() {
                hide_secrets(error);
            }
        }
        _ => {}
    }
    error
}

fn hide_secrets(error: &mut AuthError) {
    match error {
        AuthError::AuthExecRun { cmd, out } => {
            // Variables come before the program, and arguments after it. A quote within one of them is escaped.
            let program =
                format!(" {cmd}").split(" \"").nth(1).and_then(|it| it.split('"').next()).map(str::to_owned);
            *cmd = program.unwrap_or_default();
            out.stdout.clear();
            out.stderr.clear();
        }
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) => {
            *error =
                AuthError::AuthExec("what the credential plugin has printed is no ExecCredential".into());
        }
        _ => {}
    }
}
