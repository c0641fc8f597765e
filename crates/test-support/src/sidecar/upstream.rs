//! The server behind the sidecar: the in-process API server, and below `/test/` paths that it lacks.
//!
//! | | |
//! | --- | --- |
//! | `/test/echo` | streams the body back |
//! | `/test/big` | 32 MiB |
//! | `/test/warnings` | so many `Warning` headers as an old CRD causes in a list |
//! | `/test/endless` | streams for ever, and counts what it has sent |
//! | `/test/trailers` | the body, then its trailers, as trailers |
//! | anything else below `/test/` | tells what it has seen; each `x-answer: name: value` in the request is a header of the answer |
//! | an upgrade | the bytes back |
//! | with the subprotocol [`DEAF`] | the bytes back; it does not end when the caller ends |
//! | with the subprotocol [`BRIEF`] | nothing; the server ends the tunnel at once |
//! | with the subprotocol [`UNKNOWN`] | what is answered without it |

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, BodyStream, Empty, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube_leader_gate::testing::ApiServer;
use serde_json::json;
use std::{
    convert::Infallible,
    error::Error,
    future::pending,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
    task::JoinSet,
};
use tower::ServiceExt;

/// Where all sidecars of a test contend.
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/app";

type BoxError = Box<dyn Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, BoxError>;

/// More than all sockets on the way can hold.
pub const BIG: usize = 32 << 20;

/// The API server gives 4,096 characters of them.
pub const WARNINGS: usize = 300;

/// A subprotocol that the server grants, but it goes on when its other side has ended.
pub const DEAF: &str = "deaf";
/// A subprotocol that the server grants, and ends at once.
pub const BRIEF: &str = "brief";
/// A subprotocol that the server does not grant.
pub const UNKNOWN: &str = "unknown";

pub struct Upstream {
    pub server: ApiServer,
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    /// The heads of the requests below `/test/` and of upgrades.
    seen: Mutex<Vec<Request<()>>>,
    /// Bytes of `/test/endless` that were read.
    streamed: AtomicU64,
    /// Bytes that came through tunnels.
    tunnelled: AtomicU64,
    /// Open tunnels.
    tunnels: AtomicUsize,
    /// Requests that wait for [`Held`].
    waiting: AtomicUsize,
    is_held: watch::Sender<bool>,
    /// The only value of `Authorization` that is accepted. None if each is.
    accepted: Mutex<Option<String>>,
}

/// While this lives, the server answers only requests for leases.
pub struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.is_held.send_replace(false);
    }
}

/// Counts one more while it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Upstream {
    pub async fn start() -> Self {
        let (server, shared) = (ApiServer::new(), Arc::<Shared>::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let (serving, state) = (server.clone(), shared.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let (server, shared) = (serving.clone(), state.clone());
                stream.set_nodelay(true).unwrap();
                let service = service_fn(move |request| answer(server.clone(), shared.clone(), request));
                let io = TokioIo::new(stream);
                connections.spawn(async move {
                    let _ = http1::Builder::new().serve_connection(io, service).with_upgrades().await;
                });
            }
        });
        Self { server, addr, shared, _tasks: tasks }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The head of the last request below `/test/`, or of the last upgrade, whose path ends like this.
    pub fn seen(&self, path: &str) -> Request<()> {
        let seen = self.shared.seen.lock().unwrap();
        seen.iter().rfind(|request| request.uri().path().ends_with(path)).expect("it has come").clone()
    }

    /// The heads of all requests below `/test/`, and of all upgrades.
    pub fn heads(&self) -> Vec<Request<()>> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub fn has_seen(&self, path: &str) -> bool {
        self.shared.seen.lock().unwrap().iter().any(|request| request.uri().path().ends_with(path))
    }

    pub fn streamed(&self) -> u64 {
        self.shared.streamed.load(Ordering::Relaxed)
    }

    /// Bytes that came through tunnels.
    pub fn tunnelled(&self) -> u64 {
        self.shared.tunnelled.load(Ordering::Relaxed)
    }

    /// Open tunnels.
    pub fn tunnels(&self) -> usize {
        self.shared.tunnels.load(Ordering::Relaxed)
    }

    /// Answers 401 to each request whose `Authorization` is another one.
    pub fn accept(&self, authorization: &str) {
        *self.shared.accepted.lock().unwrap() = Some(authorization.to_owned());
    }

    /// Holds all answers back, except those about leases.
    pub fn hold(&self) -> Held {
        self.shared.is_held.send_replace(true);
        Held(self.shared.clone())
    }

    /// Requests whose answer is held back.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Writes `holder` into the lease, which it creates if necessary.
    pub fn held_by(&self, holder: &str) {
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 3600, "leaseTransitions": 7 });
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "app", "namespace": "default" }, "spec": spec,
        });
        self.server.put("outsider", LEASE, lease).unwrap();
    }
}

async fn answer(
    server: ApiServer,
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, BoxError> {
    let path = request.uri().path().to_owned();
    let is_accepted = {
        let accepted = shared.accepted.lock().unwrap();
        let given = request.headers().get(header::AUTHORIZATION);
        accepted.as_ref().is_none_or(|accepted| given.is_some_and(|given| given == accepted.as_str()))
    };
    if !is_accepted {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "message": "Unauthorized", "code": 401 });
        return Ok(Response::builder().status(StatusCode::UNAUTHORIZED).body(whole(status.to_string()))?);
    }
    if !path.starts_with("/apis/coordination.k8s.io/") {
        let _waiting = Counted::new(&shared.waiting);
        // It fails only when the server has gone.
        let _ = shared.is_held.subscribe().wait_for(|held| !held).await;
    }
    let within = request.headers().get(header::SEC_WEBSOCKET_PROTOCOL).cloned();
    let is_granted = within.as_ref().is_none_or(|it| it != UNKNOWN);
    let protocol = request.headers().get(header::UPGRADE).filter(|_| is_granted).cloned();
    if !path.starts_with("/test/") && protocol.is_none() {
        if request.method() != Method::GET || request.body().is_end_stream() {
            let response = server.service().oneshot(request).await?;
            return Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()));
        }
        let (head, body) = request.into_parts();
        let response = server.service().oneshot(Request::from_parts(head, Empty::<Bytes>::new())).await?;
        return Ok(response.map(|answer| bound(answer.map_err(Into::into).boxed_unsync(), body)));
    }
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    shared.seen.lock().unwrap().push(head);
    if let Some(protocol) = protocol {
        tokio::spawn(echo(hyper::upgrade::on(&mut request), shared, within));
        let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
        let response = response.header(header::CONNECTION, "Upgrade").header(header::UPGRADE, protocol);
        return Ok(response.body(whole(""))?);
    }
    let asked = asked_for(request.headers());
    let body = request.into_body();
    Ok(match path.as_str() {
        "/test/echo" => Response::new(body.map_err(Into::into).boxed_unsync()),
        "/test/warnings" => {
            let warnings = (0..WARNINGS).map(|number| {
                let text = format!("299 - \"unknown field {number}\"");
                (header::WARNING, HeaderValue::try_from(text).unwrap())
            });
            let mut response = Response::new(whole(""));
            response.headers_mut().extend(warnings);
            response
        }
        "/test/big" => Response::new(whole(vec![b'x'; BIG])),
        "/test/endless" => Response::new(endless(shared)),
        "/test/trailers" => {
            let whole = body.collect().await?;
            let trailers = whole.trailers().cloned().unwrap_or_default();
            let names = trailers.keys().map(HeaderName::as_str).collect::<Vec<_>>().join(", ");
            let frames = [Ok(Frame::data(whole.to_bytes())), Ok(Frame::trailers(trailers))];
            let response = Response::builder().header(header::TRAILER, names);
            response.body(StreamBody::new(stream::iter(frames)).boxed_unsync())?
        }
        _ => {
            let length = body.collect().await?.to_bytes().len();
            let mut response = Response::new(whole(format!("{length} bytes")));
            *response.headers_mut() = asked;
            response
        }
    })
}

/// Ends the answer when the request's body, which the server does not look at, breaks off. hyper sees the end of a
/// connection only while that body is read.
fn bound(answer: Body, mut body: Incoming) -> Body {
    let broken = Box::pin(async move {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return;
            }
        }
        pending::<()>().await;
    });
    StreamBody::new(BodyStream::new(answer).take_until(broken)).boxed_unsync()
}

/// The headers of the answer.
fn asked_for(headers: &HeaderMap) -> HeaderMap {
    let asked = headers.get_all("x-answer").iter().map(|line| line.to_str().unwrap());
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").expect("a name and a value");
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
    };
    asked.map(header).collect()
}

fn whole(text: impl Into<Bytes>) -> Body {
    Full::from(text.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn endless(shared: Arc<Shared>) -> Body {
    let piece = Bytes::from(vec![b'x'; 16 * 1024]);
    let pieces = stream::repeat_with(move || {
        shared.streamed.fetch_add(piece.len() as u64, Ordering::Relaxed);
        Ok(Frame::data(piece.clone()))
    });
    StreamBody::new(pieces.boxed()).boxed_unsync()
}

async fn echo(upgrade: hyper::upgrade::OnUpgrade, shared: Arc<Shared>, within: Option<HeaderValue>) {
    let Ok(upgraded) = upgrade.await else { return };
    if within.as_ref().is_some_and(|it| it == BRIEF) {
        return;
    }
    let _open = Counted::new(&shared.tunnels);
    let mut io = TokioIo::new(upgraded);
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = io.read(&mut part).await {
        shared.tunnelled.fetch_add(length as u64, Ordering::Relaxed);
        if io.write_all(&part[..length]).await.is_err() {
            return;
        }
    }
    if within.is_some_and(|it| it == DEAF) {
        pending::<()>().await;
    }
}
