//! Which answers tell what has become of a write.

use http::StatusCode;

/// Whether an answer with this status leaves open whether a write was carried out, or still will be. Any other answer is
/// definite: when it comes, its sender has carried the write out or refused it, and does nothing more for it.
///
/// | status | definite | who answers so | source |
/// | --- | --- | --- | --- |
/// | 2xx | yes | the API server, when etcd has confirmed the write | `apiserver/pkg/registry/generic/registry/store.go` |
/// | 3xx | yes | a server that does not serve the path: the redirect is not followed | RFC 9110, 15.4 |
/// | 400 to 407, 409 to 428, 431 to 499 | yes | the API server, or a gateway, before anything is stored; 400 and 406 also after it (below) | `apimachinery/pkg/api/errors/errors.go` |
/// | 408 | no | a gateway that has waited long enough | RFC 9110, 15.5.9 |
/// | 429 | yes | the API server's queues, before they pass the request on; an eviction that a budget forbids | `apiserver/pkg/server/filters/priority-and-fairness.go` |
/// | 500 | no | the API server, if etcd does not confirm the write in time (`etcdserver: request timed out`) | `apiserver/pkg/storage/errors`; tried with a stopped etcd: all writes stood |
/// | 502, 503 | no | a gateway whose connection to the API server was cut | RFC 9110, 15.6 |
/// | 504 | no | the API server or a gateway, when the time of the request is over | `apiserver/pkg/server/filters/timeout.go` |
///
/// **A 400 or 406 may come after the write.** If the `Accept` of a write asks for a form that its result cannot have, the API
/// server stores the object first and then answers with an error: with 406 to a `POST` that asks for
/// `as=PartialObjectMetadataList`, since one object is no list, and with 400 to one that asks for `as=Table` with an unknown
/// `includeObject` (`apiserver/pkg/endpoints/handlers/response.go`). The object exists then. Such an answer is definite all the
/// same: the API server makes it from what the storage has returned, so nothing of the write is under way any more. That is
/// what [rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order) needs before a release. Whether the write was
/// carried out is a question for the caller, who has chosen this `Accept`.
///
/// The API server answers some refusals with a status that leaves the outcome open, for example with 500 if it cannot reach a
/// webhook. The status does not tell such a refusal from a write that may have been carried out.
///
/// ```
/// use http::StatusCode;
/// use kube_leader_gate::extension::leaves_open;
///
/// assert!(leaves_open(StatusCode::GATEWAY_TIMEOUT));
/// assert!(!leaves_open(StatusCode::UNPROCESSABLE_ENTITY));
/// ```
#[must_use]
#[inline]
pub fn leaves_open(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT
}
