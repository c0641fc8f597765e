//! One call to the API server: JSON in both directions, with a size limit.

use crate::lease::error::{ErrLock, ErrLockKind};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header, uri::Authority};
use http_body_util::{BodyExt, Collected, Limited};
use kube_client::{
    Client, Error,
    client::{AuthError, Body},
};
use serde_json::Value;
use std::time::Duration;
use tower::buffer::error::{Closed, ServiceError};

/// The longest answer or line of a watch, in bytes. It is longer than any object in etcd.
pub(crate) const LONGEST: usize = 3 * 1024 * 1024;

/// Sends `body` and returns the object in the answer.
pub(crate) async fn call(
    client: &Client,
    method: Method,
    path: String,
    body: Option<&Value>,
) -> Result<Value, ErrLock> {
    let answer = collect(open(client, method, path, body).await?).await?;
    serde_json::from_slice(&answer)
        .map_err(|error| ErrLock::new(ErrLockKind::Garbage, format!("the answer is not JSON: {error}")))
}

/// Sends `body` and returns the answer's body, if the call succeeded.
pub(crate) async fn open(
    client: &Client,
    method: Method,
    path: String,
    body: Option<&Value>,
) -> Result<Body, ErrLock> {
    let body = body.map_or_else(Vec::new, |value| value.to_string().into_bytes());
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Body::from(body))
        .map_err(|error| ErrLock::new(ErrLockKind::Refused, error.to_string()))?;
    let response = client.send(request).await.map_err(|error| {
        let is_dead = is_dead(&error);
        let failed = ErrLock::new(ErrLockKind::Unreachable, chain(&without_secrets(error)));
        if is_dead { failed.of_dead_client() } else { failed }
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response.into_body());
    }
    let seconds = response.headers().get(header::RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
    let retry_after = seconds.map(Duration::from_secs);
    Err(refusal(status, retry_after, &collect(response.into_body()).await?))
}

async fn collect(body: Body) -> Result<Bytes, ErrLock> {
    let read = Limited::new(body, LONGEST).collect().await;
    read.map(Collected::to_bytes)
        .map_err(|error| ErrLock::new(ErrLockKind::Unreachable, format!("the answer broke off: {error}")))
}

/// Describes a refusal: the message of the API server's Status, or the first bytes of another answer.
fn refusal(status: StatusCode, retry_after: Option<Duration>, answer: &[u8]) -> ErrLock {
    let parsed = serde_json::from_slice::<Value>(answer).ok();
    let message =
        parsed.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str).map_or_else(
            || String::from_utf8_lossy(&answer[..answer.len().min(200)]).trim().to_owned(),
            |message| message.chars().take(500).collect(),
        );
    ErrLock::refusal(status, retry_after, &message)
}

/// Whether the client can send nothing any more. Each kube client has a buffer with a task.
fn is_dead(error: &Error) -> bool {
    match error {
        Error::Service(error) => error.is::<Closed>() || error.is::<ServiceError>(),
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

/// The same error without what a log must not show: the user part of a proxy's URL, and what a credential plugin was given
/// and has printed. No error of this crate shows them.
#[must_use]
pub fn without_secrets(mut error: Error) -> Error {
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
