//! Which answers tell what has become of a write.

use http::StatusCode;

/// Whether an answer with this status leaves open whether a write was carried out. Any other one is definite: the write was
/// carried out, or it was refused before it changed anything.
///
/// | status | definite | who answers so | source |
/// | --- | --- | --- | --- |
/// | 2xx | yes | the API server, when etcd has confirmed the write | `apiserver/pkg/registry/generic/registry/store.go` |
/// | 3xx | yes | a server that does not serve the path: the redirect is not followed | RFC 9110, 15.4 |
/// | 400 to 407, 409 to 428, 431 to 499 | yes | the API server, or a gateway, before anything is stored | `apimachinery/pkg/api/errors/errors.go` |
/// | 408 | no | a gateway that has waited long enough | RFC 9110, 15.5.9 |
/// | 429 | yes | the API server's queues, before they pass the request on; an eviction that a budget forbids | `apiserver/pkg/server/filters/priority-and-fairness.go` |
/// | 500 | no | the API server, if etcd does not confirm the write in time (`etcdserver: request timed out`) | `apiserver/pkg/storage/errors`; tried with a stopped etcd: all writes stood |
/// | 502, 503 | no | a gateway whose connection to the API server was cut | RFC 9110, 15.6 |
/// | 504 | no | the API server or a gateway, when the time of the request is over | `apiserver/pkg/server/filters/timeout.go` |
///
/// The API server answers some refusals in the same way, for example with 500 if it cannot reach a webhook. The status does
/// not tell the two apart.
///
/// ```
/// use http::StatusCode;
/// use kube_leader_gate::request::leaves_open;
///
/// assert!(leaves_open(StatusCode::GATEWAY_TIMEOUT));
/// assert!(!leaves_open(StatusCode::UNPROCESSABLE_ENTITY));
/// ```
#[must_use]
#[inline]
pub fn leaves_open(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT
}
