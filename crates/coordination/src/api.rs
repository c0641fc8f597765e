//! Calls about the `LeaseCandidate`: one call, its error, and the pause after failures.

use http::{Method, Request, header};
use kube_client::{Client, Error};
use kube_leader_gate::lease::{ErrLock, ErrLockKind};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Sends `body` and returns the object in the answer, which must come within `patience`.
pub(crate) async fn call(
    client: &Client,
    method: Method,
    path: String,
    body: Option<&Value>,
    patience: Duration,
) -> Result<Value, ErrLock> {
    let request = request(method, path, body)?;
    let answer = timeout(patience, client.request_text(request)).await;
    let answer = answer.map_err(|_| ErrLock::timeout(patience))??;
    Ok(serde_json::from_str(&answer).map_err(Error::SerdeError)?)
}

/// A request for JSON.
pub(crate) fn request(
    method: Method,
    path: String,
    body: Option<&Value>,
) -> Result<Request<Vec<u8>>, ErrLock> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(body.map_or_else(Vec::new, |value| value.to_string().into_bytes()));
    Ok(request.map_err(Error::HttpError)?)
}

/// An object in an answer that is none of the expected kind.
pub(crate) fn garbage(message: &str) -> ErrLock {
    ErrLock::new(ErrLockKind::Garbage, message)
}

/// The pause after `failures + 1` failures in a row. It doubles each time up to `longest`, and half of it is random.
pub(crate) fn backoff(first: Duration, failures: u32, longest: Duration) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(longest);
    full.mul_f64(0.5 + 0.5 * fastrand::f64())
}
