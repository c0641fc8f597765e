//! The way to the API server: through the gate, with the credentials that the lease calls have, over connections of hyper.
//!
//! This is not kube's `Client`: that one keeps whole request bodies in memory, and its stack retries. Here the body
//! streams, and nothing is sent twice.

use crate::{
    failure::Failure, kubeconfig, pool::Pool, resolve::Resolver, unanswered::Unanswered, upload::Upload,
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{
    HeaderMap, Request, Response, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, HeaderValue},
    uri::{PathAndQuery, Scheme},
};
use http_body_util::{BodyExt, Either, combinators::UnsyncBoxBody};
use hyper::body::{Body, Bytes, Incoming};
use hyper_util::client::legacy::connect::HttpConnector;
use kube_client::{Config, client::ConfigExt};
use kube_leader_gate::{
    Election,
    election::Connections,
    extension::Access,
    lease::{ErrLock, ErrLockKind, LeasePool},
    request::RequestInfo,
};
use kube_leader_gate_fence::{Fence, refusal::ResponseBody};
use std::{
    convert::Infallible,
    future::ready,
    marker, mem,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};

/// Asks the API server, through the gate.
pub(crate) type Upstream = BoxCloneSyncService<Request<Upload>, Response<Streamed>, BoxError>;

/// The body of an answer, as it comes. A fence may have read its beginning.
pub(crate) type Streamed = Either<Incoming, ResponseBody<Incoming>>;

type Sent = UnsyncBoxBody<Bytes, BoxError>;
type Answered = BoxFuture<'static, Result<Response<Incoming>, Unanswered>>;
type Send = Box<dyn Fn(Request<Sent>, Instant) -> Answered + marker::Send + Sync>;

/// The API server, as the sources of the configuration name it now.
pub(crate) struct Servers {
    pool: LeasePool,
    connections: Connections,
    newest: Mutex<Arc<Server>>,
}

/// The API server, as the sources named it when they were read last.
struct Server {
    access: Access,
    /// What comes in front of all other paths.
    path: String,
    /// What the server is called in a request.
    host: Option<HeaderValue>,
    /// What each request carries, but for the credentials.
    headers: HeaderMap,
    send: Send,
}

/// When to probe a silent connection, and how long the kernel may wait for an acknowledgement, so that no request hangs on a
/// dead connection for the kernel's 15 minutes.
const SILENCE: Duration = Duration::from_secs(30);
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);
/// The limit for the connection. If the server has more than one address, each has its share.
const CONNECTING: Duration = Duration::from_secs(30);

pub(crate) fn connect(servers: &Arc<Servers>, election: &Election, fence: Option<&Fence>) -> Upstream {
    let servers = servers.clone();
    let stack = ServiceBuilder::new()
        .map_request(|request: Request<Upload>| request.map(boxed))
        .layer(election.layer())
        .service_fn(move |request: Request<Sent>| {
            // The gate has let the request pass. What follows may take its time before the request is sent.
            let admitted = Instant::now();
            servers.newest().send(request, admitted)
        });
    let outside = ServiceBuilder::new();
    match fence {
        Some(fence) => BoxCloneSyncService::new(
            outside
                .map_response(|answer: Response<_>| answer.map(Either::Right))
                .layer(fence.refusals())
                .service(stack),
        ),
        None => BoxCloneSyncService::new(
            outside.map_response(|answer: Response<_>| answer.map(Either::Left)).service(stack),
        ),
    }
}

/// In the box into which the gate looks. One without a body needs no memory.
fn boxed(body: Upload) -> Sent {
    if body.is_end_stream() { UnsyncBoxBody::default() } else { body.map_err(BoxError::from).boxed_unsync() }
}

// === impl Servers ===

impl Servers {
    pub(crate) fn new(pool: &LeasePool, election: &Election) -> Result<Arc<Self>, Failure> {
        let access = pool.access().ok_or("the pool has no configuration")?;
        let connections = election.connections();
        let server = Server::new(access, connections.clone())?;
        Ok(Arc::new(Self { pool: pool.clone(), connections, newest: Mutex::new(Arc::new(server)) }))
    }

    /// Whether the kubeconfig impersonates another user.
    pub(crate) fn impersonate(&self) -> bool {
        kubeconfig::impersonates(self.newest().access.config())
    }

    fn newest(&self) -> Arc<Server> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if !newest.access.is_newest()
            && let Some(access) = self.pool.access()
        {
            match Server::new(access, self.connections.clone()) {
                Ok(server) => *newest = Arc::new(server),
                // The lease calls fail in the same way, and the election logs why.
                Err(error) => {
                    tracing::debug!("cannot connect by the configuration that was read anew: {error}");
                }
            }
        }
        newest.clone()
    }
}

// === impl Server ===

impl Server {
    fn new(access: Access, connections: Connections) -> Result<Self, Failure> {
        let config = access.config();
        let mut tcp = HttpConnector::new_with_resolver(Resolver::default());
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECTING));
        tcp.set_keepalive(Some(SILENCE));
        tcp.set_keepalive_interval(Some(SILENCE / 3));
        tcp.set_keepalive_retries(Some(3));
        #[cfg(target_os = "linux")] // elsewhere a dead connection waits as long as the kernel does
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let connector = config.rustls_https_connector_with_connector(tcp)?;
        let pool = Arc::new(Pool::new(connector, config.cluster_url.clone(), connections));
        let (path, host) = place(&config.cluster_url);
        let headers = headers(config)?;
        let send = move |request, admitted| pool.clone().send(request, admitted).boxed();
        Ok(Self { path, host, headers, send: Box::new(send), access })
    }

    /// Sends a request that the gate has admitted at this time.
    async fn send(
        self: Arc<Self>,
        mut request: Request<Sent>,
        admitted: Instant,
    ) -> Result<Response<Incoming>, BoxError> {
        // A program behind the proxy of the API server has passwords of its own.
        let is_of_another = RequestInfo::of(&request).subresource() == "proxy";
        self.address(&mut request);
        if let Some(value) = self.access.authorization().await? {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let answer = (self.send)(request, admitted).await;
        let is_refused = match &answer {
            Ok(answer) => answer.status() == StatusCode::UNAUTHORIZED && !is_of_another,
            Err(Unanswered::Unconnected(error)) => {
                ErrLock::unconnected(&**error).kind() == ErrLockKind::Unauthenticated
            }
            Err(_) => false,
        };
        if is_refused {
            self.access.refused();
        }
        Ok(answer?)
    }

    /// Makes the target and the host those of the server. kube's layer would print the server's address and read it again for
    /// each request.
    fn address<B>(&self, request: &mut Request<B>) {
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
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
    }
}

/// The path of the server's URL, and what the server is called.
fn place(server: &Uri) -> (String, Option<HeaderValue>) {
    let usual = if server.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let name = server.host().unwrap_or_default();
    let host = match server.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::try_from(format!("{name}:{port}")),
        None => HeaderValue::try_from(name),
    };
    (server.path().trim_end_matches('/').to_owned(), host.ok())
}

/// What kube sends with each request, for example to impersonate a user.
fn headers(config: &Config) -> Result<HeaderMap, Failure> {
    let echo = service_fn(|request: Request<()>| ready(Ok::<_, Infallible>(request.into_parts().0.headers)));
    let asked = config.extra_headers_layer()?.layer(echo).oneshot(Request::new(()));
    Ok(asked.now_or_never().transpose()?.unwrap_or_default())
}
