//! The sidecar's own answers: `v1.Status`, as the API server sends it, so that kubectl and client libraries show the
//! message.
//!
//! Client libraries send a request again after some answers: kube after 429, 503 and 504, fabric8's client after 429 and all
//! from 500 on, others after 403, 408, 421 or 425, and controllers after 409. Many also obey a `Retry-After`, or the
//! `retryAfterSeconds` of a `v1.Status`. A write that is sent again is an old decision: if this process leads by then, it
//! passes, over what another leader has written meanwhile. So a write gets none of these, but [`FAILED_WRITE`], and the
//! reason says what is known of it.

use crate::{relist::Relisted, upstream::Streamed};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Either, Full};
use kube_leader_gate::{ErrLeadershipLost, ErrNotLeader, extension::one_line, request::RequestInfo};
use kube_leader_gate_fence::ErrFenced;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// The body of the API server's answer, streamed, or the sidecar's own.
pub(crate) type Answer = Either<Relisted, Full<Bytes>>;

/// The status of each write that was refused, or whose outcome is unknown. No client library sends it again, and the API
/// server has no meaning for it. In its own words: the write depended on leadership, or on an answer.
const FAILED_WRITE: StatusCode = StatusCode::FAILED_DEPENDENCY;

/// How much of an answer the caller is told, in bytes. The API server allows a policy a message of 5 KiB.
const MOST: usize = 16 * 1024;
/// How long that may take to come. The API server sends it with the head.
const PATIENCE: Duration = Duration::from_secs(1);

/// The gate rejected the write.
pub(crate) fn not_leader(error: &ErrNotLeader, asked: &RequestInfo<'_>) -> Response<Answer> {
    let mut message = error.to_string();
    if let Some(part) = message.strip_suffix("exempt the request in the election's policy") {
        message = format!("{part}permit the request by --allow of the sidecar, if it may be sent twice");
    }
    status(FAILED_WRITE, "NotLeader", &message, Some(asked))
}

/// The fence refused the write.
pub(crate) fn fenced(error: &ErrFenced, asked: &RequestInfo<'_>) -> Response<Answer> {
    status(FAILED_WRITE, "NotLeader", &error.to_string(), Some(asked))
}

/// The gate cut the write off.
pub(crate) fn leadership_lost(error: &ErrLeadershipLost, asked: &RequestInfo<'_>) -> Response<Answer> {
    status(FAILED_WRITE, "LeadershipLost", &error.to_string(), Some(asked))
}

/// The sidecar does not accept the request.
pub(crate) fn forbidden(message: &str) -> Response<Answer> {
    status(StatusCode::FORBIDDEN, "Forbidden", message, None)
}

/// The request is invalid.
pub(crate) fn bad_request(message: &str) -> Response<Answer> {
    status(StatusCode::BAD_REQUEST, "BadRequest", message, None)
}

/// A watch asks for a WebSocket, which the sidecar does not grant. fabric8's client, whose watches do so, then begins the watch
/// again without one. With most of its HTTP libraries, it first waits for the end of this answer. So this must not be the
/// answer to a watch, which does not end.
pub(crate) fn no_tunnel() -> Response<Answer> {
    let mut response = Response::new(Either::Right(Full::default()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The API server did not answer. A read may be sent again.
pub(crate) fn no_answer(is_read: bool, is_sent: bool, message: &str) -> Response<Answer> {
    let (code, reason) = match (is_read, is_sent) {
        (true, _) => (StatusCode::BAD_GATEWAY, "BadGateway"),
        (false, true) => (FAILED_WRITE, "OutcomeUnknown"),
        (false, false) => (FAILED_WRITE, "NotSent"),
    };
    status(code, reason, message, None)
}

/// The API server, or what is behind it, answered a write, but the status leaves its outcome open. The caller gets the
/// words of the answer alone: the rest may ask for the same write again.
pub(crate) async fn unknown(response: Response<Streamed>) -> Response<Answer> {
    let (code, mut body) = (response.status(), response.into_body());
    let mut said = Vec::new();
    // If it breaks off or is late, its beginning must do.
    let _ = timeout(PATIENCE, async {
        while let Some(Ok(frame)) = body.frame().await
            && said.len() < MOST
        {
            said.extend(frame.into_data().unwrap_or_default());
        }
    })
    .await;
    let said = words(&said);
    let colon = if said.is_empty() { "" } else { ": " };
    let text = format!(
        "the API server answered {code}; it is unknown whether it carried the request out{colon}{said}"
    );
    status(FAILED_WRITE, "OutcomeUnknown", &text, None)
}

/// What an answer says: the message of a Status, or the text in what is no JSON (protobuf, a page of a gateway).
fn words(answer: &[u8]) -> String {
    let status = serde_json::from_slice::<Value>(answer).unwrap_or_default();
    let text = String::from_utf8_lossy(answer);
    one_line(&status["message"].as_str().map_or_else(|| text.replace(char::is_control, " "), str::to_owned))
}

fn status(code: StatusCode, reason: &str, text: &str, asked: Option<&RequestInfo<'_>>) -> Response<Answer> {
    let details = asked.map_or_else(
        || json!({}),
        |it| json!({ "group": it.group(), "kind": it.resource(), "name": it.name().unwrap_or_default() }),
    );
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": reason,
        "details": details,
        "code": code.as_u16(),
    });
    let mut response = Response::new(Either::Right(Full::from(status.to_string())));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_of_every_encoding_are_found() {
        for (answer, said) in [
            (&br#"{"kind":"Status","message":"request timed out","details":{"retryAfterSeconds":2}}"#[..], "request timed out"),
            (b"k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x2c\x0a\x00\x12\x07Failure\x1a\x11request timed out", "k8s v1 Status , Failure request timed out"),
            (b"<h1>\r\n\x1b502</h1>", "<h1> 502</h1>"),
            (b"[]", "[]"),
            (b"", ""),
        ] {
            assert_eq!(words(answer), said);
        }
    }
}
