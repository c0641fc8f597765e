//! The sidecar's own answers: `v1.Status`, as the API server sends it, so that kubectl and client libraries show the
//! message. None has a `Retry-After`: clients would send a write again by themselves.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use kube_leader_gate::{ErrLeadershipLost, ErrNotLeader, refusal::ResponseBody, request::RequestInfo};
use serde_json::{Value, json};

/// The body of the API server's answer, streamed, or the sidecar's own.
pub type Answer = Either<ResponseBody<Incoming>, Full<Bytes>>;

/// The gate rejected the write.
pub fn not_leader(error: &ErrNotLeader, asked: &RequestInfo<'_>) -> Response<Answer> {
    status(StatusCode::SERVICE_UNAVAILABLE, "NotLeader", &error.to_string(), &details(asked))
}

/// The gate cut the write off.
pub fn leadership_lost(error: &ErrLeadershipLost, asked: &RequestInfo<'_>) -> Response<Answer> {
    status(StatusCode::GATEWAY_TIMEOUT, "LeadershipLost", &error.to_string(), &details(asked))
}

fn details(asked: &RequestInfo<'_>) -> Value {
    json!({
        "group": asked.group(),
        "kind": asked.resource(),
        "name": asked.name().unwrap_or_default(),
    })
}

/// The sidecar does not accept the request.
pub fn forbidden(message: &str) -> Response<Answer> {
    status(StatusCode::FORBIDDEN, "Forbidden", message, &json!({}))
}

/// The request is invalid.
pub fn bad_request(message: &str) -> Response<Answer> {
    status(StatusCode::BAD_REQUEST, "BadRequest", message, &json!({}))
}

/// The API server did not answer.
pub fn bad_gateway(message: &str) -> Response<Answer> {
    status(StatusCode::BAD_GATEWAY, "BadGateway", message, &json!({}))
}

fn status(code: StatusCode, reason: &str, message: &str, details: &Value) -> Response<Answer> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code.as_u16(),
    });
    json(code, &status).map(Either::Right)
}

pub fn json(code: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(value.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
