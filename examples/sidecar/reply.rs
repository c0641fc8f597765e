//! What the sidecar itself answers: `v1.Status`, as the API server does, so that kubectl and client libraries show the
//! message. None has a `Retry-After`: clients would send a write again by themselves.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use kube_leader_gate::{ErrLeadershipLost, ErrNotLeader, request::RequestInfo};
use serde_json::{Value, json};

/// The API server's body, as it comes, or the sidecar's own.
pub type Answer = Either<Incoming, Full<Bytes>>;

/// Rejected by the gate.
pub fn not_leader(error: &ErrNotLeader, asked: &RequestInfo<'_>) -> Response<Answer> {
    status(StatusCode::SERVICE_UNAVAILABLE, "NotLeader", &error.to_string(), &details(asked))
}

/// Cut off by the gate.
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

/// Not accepted by the sidecar.
pub fn forbidden(message: &str) -> Response<Answer> {
    status(StatusCode::FORBIDDEN, "Forbidden", message, &json!({}))
}

/// Nothing that an API server could be asked.
pub fn bad_request(message: &str) -> Response<Answer> {
    status(StatusCode::BAD_REQUEST, "BadRequest", message, &json!({}))
}

/// No answer from the API server.
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
