//! One call to the API server: JSON in both directions, with a size limit.

use super::{
    error::{CallError, Failure, without_secrets},
    lines::LONGEST,
};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Collected, Limited};
use kube_client::{Client, client::Body};
use serde_json::Value;
use tower::buffer::error::{Closed, ServiceError};

/// Sends `body` and returns the object in the answer.
pub(crate) async fn call(
    client: &Client,
    method: Method,
    path: String,
    body: Option<&Value>,
) -> Result<Value, CallError> {
    let answer = collect(open(client, method, path, body).await?).await?;
    serde_json::from_slice(&answer)
        .map_err(|error| CallError::new(Failure::Garbage, format!("the answer is not JSON: {error}")))
}

/// Sends `body` and returns the answer's body, if the call succeeded.
pub(crate) async fn open(
    client: &Client,
    method: Method,
    path: String,
    body: Option<&Value>,
) -> Result<Body, CallError> {
    let body = body.map_or_else(Vec::new, |value| value.to_string().into_bytes());
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Body::from(body))
        .map_err(|error| CallError::new(Failure::Unsendable, error.to_string()))?;
    let response = client.send(request).await.map_err(|error| {
        let failure = if is_dead(&error) { Failure::Dead } else { Failure::Unreachable };
        CallError::new(failure, chain(&without_secrets(error)))
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response.into_body());
    }
    Err(refusal(status, &collect(response.into_body()).await?))
}

async fn collect(body: Body) -> Result<Bytes, CallError> {
    let read = Limited::new(body, LONGEST).collect().await;
    read.map(Collected::to_bytes)
        .map_err(|error| CallError::new(Failure::Unreachable, format!("the answer broke off: {error}")))
}

/// Describes a refusal: the message of the API server's Status, or the first bytes of another answer.
fn refusal(status: StatusCode, answer: &[u8]) -> CallError {
    let parsed = serde_json::from_slice::<Value>(answer).ok();
    let message =
        parsed.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str).map_or_else(
            || String::from_utf8_lossy(&answer[..answer.len().min(200)]).trim().to_owned(),
            |message| message.chars().take(500).collect(),
        );
    CallError::new(Failure::Status(status), format!("{}: {message}", status.as_u16()))
}

/// Whether the client can send nothing any more. Each kube client has a buffer with a task.
fn is_dead(error: &kube_client::Error) -> bool {
    match error {
        kube_client::Error::Service(error) => error.is::<Closed>() || error.is::<ServiceError>(),
        _ => false,
    }
}

/// An error with its causes, outermost first.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..8 {
        let Some(error) = cause else { break };
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
