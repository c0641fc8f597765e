//! The way to the API server: kube's own layers for credentials and TLS, over connections of hyper.
//!
//! This is not kube's `Client`: that one keeps whole request bodies in memory, and its stack retries. Here the body
//! streams, and nothing is sent twice.

use crate::{failure::Failure, pool::Pool, upload::Upload};
use http::{
    Request, Response, Uri,
    header::{HOST, HeaderValue},
    uri::{PathAndQuery, Scheme},
};
use http_body_util::{BodyExt, Either, combinators::UnsyncBoxBody};
use hyper::body::{Body, Bytes, Incoming};
use hyper_util::client::legacy::connect::HttpConnector;
use kube_client::{Config, client::ConfigExt};
use kube_leader_gate::{Election, without_secrets};
use kube_leader_gate_fence::{Fence, refusal::ResponseBody};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};
use tower::{BoxError, ServiceBuilder, util::BoxCloneSyncService};

/// Asks the API server, through the gate.
pub(crate) type Upstream = BoxCloneSyncService<Request<Upload>, Response<Streamed>, BoxError>;

/// The body of an answer, as it comes. A fence may have read its beginning.
pub(crate) type Streamed = Either<Incoming, ResponseBody<Incoming>>;

/// The server of the kubeconfig.
struct Base {
    /// What comes in front of all other paths.
    path: String,
    /// What the server is called in a request.
    host: Option<HeaderValue>,
}

/// When the gate has let a request pass. The layers below may take their time before they send it.
#[derive(Clone, Copy)]
struct Admitted(Instant);

/// When to probe a silent connection, so that a watch does not hang on a dead one for the kernel's 11 minutes.
const SILENCE: Duration = Duration::from_secs(30);

pub(crate) fn connect(
    config: &Config,
    election: &Election,
    fence: Option<&Fence>,
) -> Result<Upstream, Failure> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(SILENCE));
    tcp.set_keepalive_interval(Some(SILENCE / 3));
    tcp.set_keepalive_retries(Some(3));
    let connector = config.rustls_https_connector_with_connector(tcp)?;
    let begun = Instant::now();
    let pool = Arc::new(Pool::new(connector, config.cluster_url.clone(), election.connections()));
    let base = Arc::new(Base::of(&config.cluster_url));
    let stack = ServiceBuilder::new()
        .map_request(|request: Request<Upload>| request.map(boxed))
        .layer(election.layer())
        .map_request(move |request| base.address(request))
        .option_layer(config.auth_layer().map_err(without_secrets)?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service_fn(move |request: Request<_>| {
            // Without a note, each connection counts as younger, and the gate looks once more.
            let admitted = request.extensions().get().map_or(begun, |&Admitted(at)| at);
            pool.clone().send(request, admitted)
        });
    let outside = ServiceBuilder::new();
    Ok(match fence {
        Some(fence) => BoxCloneSyncService::new(
            outside
                .map_response(|answer: Response<_>| answer.map(Either::Right))
                .layer(fence.refusals())
                .service(stack),
        ),
        None => BoxCloneSyncService::new(
            outside.map_response(|answer: Response<_>| answer.map(Either::Left)).service(stack),
        ),
    })
}

/// In the box into which the gate looks. One without a body needs no memory.
fn boxed(body: Upload) -> UnsyncBoxBody<Bytes, BoxError> {
    if body.is_end_stream() { UnsyncBoxBody::default() } else { body.map_err(BoxError::from).boxed_unsync() }
}

// === impl Base ===

impl Base {
    fn of(server: &Uri) -> Self {
        let usual = if server.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let name = server.host().unwrap_or_default();
        let host = match server.port_u16().filter(|port| *port != usual) {
            Some(port) => HeaderValue::try_from(format!("{name}:{port}")),
            None => HeaderValue::try_from(name),
        };
        Self { path: server.path().trim_end_matches('/').to_owned(), host: host.ok() }
    }

    /// Makes the target and the host those of the server, and notes the time. kube's layer would print the server's address
    /// and read it again for each request.
    fn address<B>(&self, mut request: Request<B>) -> Request<B> {
        let target = mem::take(request.uri_mut()).into_parts().path_and_query;
        let target = if self.path.is_empty() {
            target
        } else {
            let asked = target.as_ref().map_or("/", PathAndQuery::as_str);
            // Both are valid, and so is the whole. A URI holds 64 KiB, and the request's part is shorter.
            PathAndQuery::try_from(format!("{}{asked}", self.path)).ok()
        };
        *request.uri_mut() = target.map(Uri::from).unwrap_or_default();
        if let Some(host) = &self.host {
            request.headers_mut().insert(HOST, host.clone());
        }
        request.extensions_mut().insert(Admitted(Instant::now()));
        request
    }
}
