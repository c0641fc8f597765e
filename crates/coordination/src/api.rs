//! Calls about the `LeaseCandidate`: one call, its errors, and the pause after failures.

use http::{Method, Request, StatusCode, header};
use kube_client::{Client, Error, client::AuthError};
use serde_json::Value;
use std::{fmt, time::Duration};
use tokio::time::timeout;

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
    /// The answer makes no sense.
    Garbage,
}

/// Sends `body` and returns the object in the answer, which must come within `patience`.
pub(crate) async fn call(
    client: &Client,
    method: Method,
    path: String,
    body: Option<&Value>,
    patience: Duration,
) -> Result<Value, CallError> {
    let request = request(method, path, body)?;
    let answer = timeout(patience, client.request_text(request)).await;
    let answer = answer.map_err(|_| CallError::timeout(patience))?.map_err(CallError::from)?;
    serde_json::from_str(&answer)
        .map_err(|error| CallError::new(Failure::Garbage, format!("the answer is not JSON: {error}")))
}

/// A request for JSON.
pub(crate) fn request(
    method: Method,
    path: String,
    body: Option<&Value>,
) -> Result<Request<Vec<u8>>, CallError> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(body.map_or_else(Vec::new, |value| value.to_string().into_bytes()))
        .map_err(|error| CallError::new(Failure::Garbage, error.to_string()))
}

/// The pause after `failures + 1` failures in a row. It doubles each time up to `longest`, and half of it is random.
pub(crate) fn backoff(first: Duration, failures: u32, longest: Duration) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(longest);
    full.mul_f64(0.5 + 0.5 * fastrand::f64())
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

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(status) => Self::status(status.code, &status.message),
            Error::SerdeError(error) => {
                Self::new(Failure::Garbage, format!("the answer is not JSON: {error}"))
            }
            error => Self::new(Failure::Unreachable, chain(&error)),
        }
    }
}

impl CallError {
    pub(crate) fn status(code: u16, message: &str) -> Self {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message: String = message.chars().take(500).collect();
        Self::new(Failure::Status(status), format!("{code}: {message}"))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.failure.as_str(), self.message)
    }
}

/// An error with its causes, outermost first.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    for _ in 0..8 {
        let Some(error) = cause else { break };
        // It may hold what a credential plugin was given or has printed.
        if error.is::<AuthError>() || matches!(error.downcast_ref(), Some(Error::Auth(_))) {
            return "the client could not get its credentials".to_owned();
        }
        let more = error.to_string();
        if !text.contains(&more) {
            text = if text.is_empty() { more } else { format!("{text}: {more}") };
        }
        cause = error.source();
    }
    text
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
            Self::Garbage => "garbage",
            Self::Status(_) => "refused",
        }
    }
}
