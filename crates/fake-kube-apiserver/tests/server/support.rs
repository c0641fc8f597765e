//! A client of a few lines, over the tower service.

use std::pin::Pin;
use std::time::Duration;

use ::http::{HeaderMap, Request, Response};
use bytes::Bytes;
use fake_kube_apiserver::{ApiBody, ApiServer, BoxError};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// A watch, read line by line.
pub(crate) struct Watch(Pin<Box<ApiBody>>);

/// What a watch sends next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Event(String, Value),
    Junk(Bytes),
    Broken,
    End,
}

impl Answer {
    /// `reason: message` of a `v1.Status`.
    pub(crate) fn said(&self) -> String {
        assert_eq!(self.body["kind"], "Status", "{self:?}");
        assert_eq!(self.body["apiVersion"], "v1");
        assert_eq!(self.body["status"], "Failure");
        assert_eq!(self.body["code"], self.code);
        let text = |member: &str| self.body[member].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("reason"), text("message"))
    }

    pub(crate) fn version(&self) -> String {
        self.body["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
    }
}

pub(crate) async fn send(
    server: &ApiServer,
    user: &str,
    method: &str,
    path: &str,
    body: impl ToString,
) -> Result<Response<ApiBody>, BoxError> {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {user}"))
        .header("content-type", content_type)
        .body(body.to_string())?;
    server.service().oneshot(request).await
}

pub(crate) async fn read(response: Response<ApiBody>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a whole body").to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Answer { code: parts.status.as_u16(), headers: parts.headers, body }
}

/// Sends as the user `a`, and reads the answer.
pub(crate) async fn ask(server: &ApiServer, method: &str, path: &str, body: impl ToString) -> Answer {
    read(send(server, "a", method, path, body).await.expect("an answer")).await
}

pub(crate) async fn watch(server: &ApiServer, path: &str) -> Watch {
    let response = send(server, "a", "GET", path, "").await.expect("an answer");
    Watch::of(response)
}

impl Watch {
    pub(crate) fn of(response: Response<ApiBody>) -> Self {
        assert_eq!(response.status(), 200);
        Self(Box::pin(response.into_body()))
    }

    /// The next event; waits at most two minutes of tokio's time.
    pub(crate) async fn next(&mut self) -> Next {
        match tokio::time::timeout(Duration::from_secs(120), self.0.frame()).await.expect("an event in time")
        {
            None => Next::End,
            Some(Err(_)) => Next::Broken,
            Some(Ok(frame)) => {
                let line = frame.into_data().expect("data");
                match serde_json::from_slice::<Value>(&line) {
                    Ok(event) if line.ends_with(b"\n") => {
                        let kind = event["type"].as_str().expect("a type").to_owned();
                        Next::Event(kind, event["object"].clone())
                    }
                    _ => Next::Junk(line),
                }
            }
        }
    }

    /// The next event as `TYPE name`.
    pub(crate) async fn brief(&mut self) -> String {
        match self.next().await {
            Next::Event(kind, object) => {
                format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or_default())
                    .trim_end()
                    .to_owned()
            }
            other => format!("{other:?}"),
        }
    }
}
