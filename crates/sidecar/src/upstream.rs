//! The way to the API server: kube's own layers for its address, credentials and TLS, over hyper's client.
//!
//! This is not kube's `Client`: that one keeps whole request bodies in memory, and its stack retries. Here the body
//! streams, and nothing is sent twice.

use crate::{
    failure::{Failure, chain},
    upload::Upload,
};
use http::{
    Request, Response, Uri,
    header::{HOST, HeaderValue},
    uri::{Authority, PathAndQuery, Scheme},
};
use http_body_util::{BodyExt, Either, combinators::UnsyncBoxBody};
use hyper::body::{Body, Bytes, Incoming};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioTimer,
};
use kube_client::{Config, client::ConfigExt};
use kube_leader_gate::{Election, lease::ErrLock, without_secrets};
use kube_leader_gate_fence::{Fence, refusal::ResponseBody};
use std::{error::Error, mem, sync::Arc, time::Duration};
use tower::{BoxError, ServiceBuilder, util::BoxCloneSyncService};

/// Asks the API server, through the gate.
pub(crate) type Upstream = BoxCloneSyncService<Request<Upload>, Response<Streamed>, BoxError>;

/// The body of an answer, as it comes. A fence may have read its beginning.
pub(crate) type Streamed = Either<Incoming, ResponseBody<Incoming>>;

/// The server of the kubeconfig, which may have a path in front of all others.
struct Base {
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    path: String,
    /// What the server is called in a request.
    host: Option<HeaderValue>,
}

/// The limit for the connection and its handshake, as in client-go. An answer may take as long as it likes: watches
/// and logs do.
const CONNECTING: Duration = Duration::from_secs(30);
/// Shorter than the API server's own limit of 90 s: a request on a connection that is just being closed is lost.
const IDLE: Duration = Duration::from_secs(60);
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
    let connector = ServiceBuilder::new()
        .map_future(Box::pin) // hyper's client moves it
        .timeout(CONNECTING)
        .service(config.rustls_https_connector_with_connector(tcp)?);
    let client = Client::builder(election.connections())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .set_host(false)
        .build(connector);
    let base = Arc::new(Base::of(&config.cluster_url));
    let stack = ServiceBuilder::new()
        .map_request(|request: Request<Upload>| request.map(boxed))
        .layer(election.layer())
        .map_request(move |request| base.address(request))
        .option_layer(config.auth_layer().map_err(without_secrets)?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
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
        Self {
            scheme: server.scheme().cloned(),
            authority: server.authority().cloned(),
            path: server.path().trim_end_matches('/').to_owned(),
            host: host.ok(),
        }
    }

    /// Says where the request goes. kube's layer and hyper's client would print the server's address and read it again for
    /// each request.
    fn address<B>(&self, mut request: Request<B>) -> Request<B> {
        let mut uri = mem::take(request.uri_mut()).into_parts();
        let asked = uri.path_and_query.take();
        uri.path_and_query = if self.path.is_empty() {
            asked
        } else {
            let asked = asked.as_ref().map_or("/", PathAndQuery::as_str);
            // Both are valid, and so is the whole. A URI holds 64 KiB, and the request's part is shorter.
            PathAndQuery::try_from(format!("{}{asked}", self.path)).ok()
        };
        (uri.scheme, uri.authority) = (self.scheme.clone(), self.authority.clone());
        *request.uri_mut() = Uri::from_parts(uri).unwrap_or_default();
        if let Some(host) = &self.host {
            request.headers_mut().insert(HOST, host.clone());
        }
        request
    }
}

/// Why the caller's body has no end, if that is the problem: it broke off, or is not valid HTTP.
pub(crate) fn broken_body(error: &BoxError) -> Option<String> {
    let sent = error.downcast_ref::<hyper_util::client::legacy::Error>()?.source()?;
    let reading = sent.downcast_ref::<hyper::Error>().filter(|sent| sent.is_user())?.source()?;
    reading.is::<hyper::Error>().then(|| {
        let text = chain(reading);
        format!(
            "the body of the request broke off or is not valid HTTP; it is unknown whether the API server carried the \
             request out: {text}"
        )
    })
}

/// Describes the failure, and says whether the request may have been sent.
pub(crate) fn explain(error: BoxError) -> (bool, String) {
    let Some(failed) = error.downcast_ref::<hyper_util::client::legacy::Error>() else {
        // A plugin may have printed a token.
        let text = "could not get credentials for the API server, nothing was sent; the election logs why";
        return (false, text.to_owned());
    };
    let is_sent = !failed.is_connect();
    let what = if is_sent {
        "the API server did not answer; it is unknown whether it carried the request out"
    } else {
        "the API server cannot be reached, nothing was sent"
    };
    (is_sent, format!("{what}: {}", ErrLock::from(kube_client::Error::Service(error)).explain("")))
}
