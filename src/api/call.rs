//! One call to the API server: JSON in both directions, with a size limit.

use super::credentials::Credentials;
use crate::lease::error::{ErrLock, ErrLockKind};
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};
use kube_client::{Client, client::Body};
use serde_json::Value;
use std::time::Duration;

/// The longest answer or line of a watch, in bytes. It is longer than any object in etcd.
pub(crate) const LONGEST: usize = 3 * 1024 * 1024;

/// A client, and who it is for the API server.
#[derive(Clone)]
pub(crate) struct Authorized {
    pub(crate) client: Client,
    /// None if the client itself has them.
    pub(crate) credentials: Option<Credentials>,
}

impl From<Client> for Authorized {
    /// The client has its own credentials.
    fn from(client: Client) -> Self {
        Self { client, credentials: None }
    }
}

impl Authorized {
    /// Sends a request with the credentials of this process.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, ErrLock> {
        if let Some(credentials) = &self.credentials {
            request.headers_mut().insert(header::AUTHORIZATION, credentials.authorization().await?);
        }
        Ok(self.client.send(request).await?)
    }
}

/// Sends `body` and returns the object in the answer.
pub(crate) async fn call(
    client: &Authorized,
    method: Method,
    path: String,
    body: Option<&Value>,
) -> Result<Value, ErrLock> {
    let answer = collect(open(client, method, path, body).await?).await?;
    serde_json::from_slice(&answer)
        .map_err(|error| ErrLock::new(ErrLockKind::BadAnswer, format!("the answer is not JSON: {error}")))
}

/// Sends `body` and returns the answer's body, if the call succeeded.
pub(crate) async fn open(
    client: &Authorized,
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
    let response = client.send(request).await?;
    let status = response.status();
    if status.is_success() {
        return Ok(response.into_body());
    }
    let (head, body) = response.into_parts();
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = header(header::RETRY_AFTER).and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let message = match header(header::LOCATION).filter(|_| status.is_redirection()) {
        Some(url) => format!("a redirect to {}", place(url)),
        None => said(&collect(body).await?),
    };
    Err(ErrLock::refusal(status, retry_after, &message))
}

async fn collect(body: Body) -> Result<Bytes, ErrLock> {
    let read = Limited::new(body, LONGEST).collect().await;
    read.map(Collected::to_bytes).map_err(|error| {
        let message = format!("the answer broke off: {error}");
        if error.is::<LengthLimitError>() {
            ErrLock::new(ErrLockKind::BadAnswer, message)
        } else {
            ErrLock::cut_off(message)
        }
    })
}

/// What a refusal says: the message of the API server's Status, or the first bytes of another answer.
fn said(answer: &[u8]) -> String {
    let parsed = serde_json::from_slice::<Value>(answer).ok();
    let message = parsed.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str);
    let first = || String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned();
    message.map_or_else(first, str::to_owned)
}

/// A URL without its user part and its query, which may be secret.
fn place(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    match path.split_once("//") {
        Some((scheme, rest)) if scheme.is_empty() || scheme.ends_with(':') => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            format!("{scheme}//{}/{path}", host.rsplit('@').next().unwrap_or_default())
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_of_a_redirect_shows_no_secrets() {
        for (url, shown) in [
            ("https://login.example/start?state=secret#secret", "https://login.example/start"),
            ("https://user:secret@login.example", "https://login.example/"),
            ("/login?next=secret", "/login"),
            ("//user:secret@login.example/start", "//login.example/start"),
        ] {
            assert_eq!(place(url), shown);
        }
    }
}
