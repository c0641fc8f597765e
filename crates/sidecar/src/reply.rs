//! The sidecar's own answers: `v1.Status`, as the API server sends it, so that kubectl and client libraries show the
//! message. None has a `Retry-After`: clients would send a write again by themselves.
//!
//! They also do that with some statuses: kube with 429, 503 and 504, fabric8's client with 429 and all from 500 on,
//! others with 408, 421 or 425, and controllers repeat a conflict. So a write whose outcome is unknown gets none of
//! these, but [`UNKNOWN`].

use crate::upstream::Streamed;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{Either, Full};
use kube_leader_gate::{ErrLeadershipLost, ErrNotLeader, request::RequestInfo};
use serde_json::json;

/// The body of the API server's answer, streamed, or the sidecar's own.
pub(crate) type Answer = Either<Streamed, Full<Bytes>>;

/// The status of a write whose outcome is unknown. It depended on an answer, or on leadership. No client library
/// repeats it, and the API server has no meaning for it.
pub(crate) const UNKNOWN: StatusCode = StatusCode::FAILED_DEPENDENCY;

/// The gate rejected the write.
pub(crate) fn not_leader(error: &ErrNotLeader, asked: &RequestInfo<'_>) -> Response<Answer> {
    let mut message = error.to_string();
    if let Some(part) = message.strip_suffix("exempt the request in the election's policy") {
        message = format!("{part}permit the request by --allow of the sidecar, if it may be sent twice");
    }
    status(StatusCode::SERVICE_UNAVAILABLE, "NotLeader", &message, Some(asked))
}

/// The gate cut the write off.
pub(crate) fn leadership_lost(error: &ErrLeadershipLost, asked: &RequestInfo<'_>) -> Response<Answer> {
    status(UNKNOWN, "LeadershipLost", &error.to_string(), Some(asked))
}

/// The sidecar does not accept the request.
pub(crate) fn forbidden(message: &str) -> Response<Answer> {
    status(StatusCode::FORBIDDEN, "Forbidden", message, None)
}

/// The request is invalid.
pub(crate) fn bad_request(message: &str) -> Response<Answer> {
    status(StatusCode::BAD_REQUEST, "BadRequest", message, None)
}

/// The API server did not answer. To repeat the request does no harm if it is a read, or was not sent.
pub(crate) fn no_answer(is_harmless: bool, message: &str) -> Response<Answer> {
    let (code, reason) =
        if is_harmless { (StatusCode::BAD_GATEWAY, "BadGateway") } else { (UNKNOWN, "OutcomeUnknown") };
    status(code, reason, message, None)
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
