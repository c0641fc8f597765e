//! Probes, and the name of the leader: [`Health`] answers `/livez`, `/readyz` and `/leader`. `metrics` has another page,
//! which is served in the same way.

use crate::{hosts::Hosts, serve::accept};
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use kube_leader_gate::{Candidate, health::Health};
use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// The periods of the core Kubernetes controllers.
const MAX_TOLERABLE_EXPIRED: Duration = Duration::from_secs(20);
/// The limit of open connections. Probes come one by one. Beyond the limit the oldest connection is closed, so that
/// idle callers do not starve probes.
pub(crate) const CONNECTIONS: usize = 64;
/// How long the head of a connection's one request may take.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_HEAD: usize = 8 * 1024;

/// What a listener shows.
pub(crate) trait Pages: Send + Sync + 'static {
    fn answer(&self, request: Request<Incoming>) -> Response<String>;
}

pub(crate) struct Status {
    hosts: Hosts,
    health: Health,
}

// === impl Status ===

impl Status {
    pub(crate) fn new(candidate: Candidate, hosts: Hosts) -> Self {
        Self { hosts, health: Health::new(candidate, MAX_TOLERABLE_EXPIRED) }
    }
}

impl Pages for Status {
    fn answer(&self, request: Request<Incoming>) -> Response<String> {
        if let Err(message) = self.hosts.check(request.uri(), request.headers()) {
            let mut refusal = Response::new(message + "\n");
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            refusal.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            return refusal;
        }
        let Ok(answer) = self.health.call(request).into_inner();
        answer
    }
}

/// Answers for ever.
pub(crate) async fn serve(pages: impl Pages, listener: TcpListener) -> Infallible {
    let pages = Arc::new(pages);
    let mut connections = VecDeque::new();
    loop {
        let stream = accept(&listener).await;
        if connections.len() == CONNECTIONS {
            connections.pop_front();
        }
        connections.push_back(AbortOnDropHandle::new(tokio::spawn(serve_one(pages.clone(), stream))));
    }
}

async fn serve_one(pages: Arc<impl Pages>, stream: TcpStream) {
    let answer = service_fn(async |request| Ok::<_, Infallible>(pages.answer(request)));
    // The caller caused the error.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .keep_alive(false)
        // The answer is ready at once, even if the caller has ended its side.
        .half_close(true)
        .max_header_size(LONGEST_HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}
