//! The way to the API server: kube's own layers for its address, credentials and TLS, over hyper's client.
//!
//! This is not kube's `Client`: that one keeps whole request bodies in memory, and its stack retries. Here the body
//! streams, and nothing is sent twice.

use crate::{
    failure::{Failure, chain},
    upload::Upload,
};
use http::{Request, Response};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::body::{Body, Bytes};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioTimer,
};
use kube_client::{Config, client::ConfigExt};
use kube_leader_gate::{Election, lease::ErrLock, without_secrets};
use kube_leader_gate_fence::Fence;
use std::{error::Error, time::Duration};
use tower::{BoxError, ServiceBuilder, util::BoxCloneSyncService};

/// Asks the API server, through the gate.
pub(crate) type Upstream = BoxCloneSyncService<Request<Upload>, Response<Streamed>, BoxError>;

/// The body of an answer, as it comes.
pub(crate) type Streamed = UnsyncBoxBody<Bytes, hyper::Error>;

/// The limit for the connection and its handshake, as in client-go. An answer may take as long as it likes: watches
/// and logs do.
const CONNECTING: Duration = Duration::from_secs(30);
/// Shorter than the API server's own limit of 90 s: a request on a connection that is just being closed is lost.
const IDLE: Duration = Duration::from_secs(60);
/// Idle connections that are kept.
const KEPT: usize = 64;
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
        .pool_max_idle_per_host(KEPT)
        .build(connector);
    let stack = ServiceBuilder::new()
        .map_request(|request: Request<Upload>| {
            request.map(|body| body.map_err(BoxError::from).boxed_unsync())
        })
        .layer(election.layer())
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(without_secrets)?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    let streams = ServiceBuilder::new();
    Ok(match fence {
        Some(fence) => {
            BoxCloneSyncService::new(streams.map_response(streamed).layer(fence.refusals()).service(stack))
        }
        None => BoxCloneSyncService::new(streams.map_response(streamed).service(stack)),
    })
}

fn streamed(
    answer: Response<impl Body<Data = Bytes, Error = hyper::Error> + Send + 'static>,
) -> Response<Streamed> {
    answer.map(BodyExt::boxed_unsync)
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
