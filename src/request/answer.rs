//! Which answers tell what has become of a write.

use http::StatusCode;

/// Whether an answer with this status leaves open whether the write was carried out. Any other one is definite: the write was
/// carried out, or it was refused before it changed anything.
///
/// | status | who answers so although the write may take effect |
/// | --- | --- |
/// | 408 | a gateway that has waited long enough |
/// | 500 | the API server, if etcd does not confirm the write in time (`etcdserver: request timed out`) |
/// | 502, 503 | a gateway whose connection to the API server was cut |
/// | 504 | the API server or a gateway, when the time of the request is over |
///
/// The API server answers some refusals in the same way, for example with 500 if it cannot reach a webhook. The status does
/// not tell the two apart.
pub(crate) fn leaves_open(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT
}
