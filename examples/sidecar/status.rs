//! Probes, and the name of the leader.
//!
//! [`Health`] answers `/healthz` and `/leader`. `/readyz` says that this process has seen the lease, so it can reach
//! the API server. It does *not* say that this process leads: a rollout would wait for that for ever.

use crate::{
    hosts::Hosts,
    serve::{Connections, Stop, WhenFull},
};
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use kube_leader_gate::{Candidate, health::Health};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};

/// The periods of the core Kubernetes controllers.
const MAX_TOLERABLE_EXPIRED: Duration = Duration::from_secs(20);
/// The limit of open connections. Probes come one by one. Beyond the limit the oldest connection is closed, so that
/// idle callers do not starve probes.
const CONNECTIONS: usize = 64;
/// How long the head of a connection's one request may take.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_HEAD: usize = 8 * 1024;

pub struct Status {
    hosts: Hosts,
    candidate: Candidate,
    health: Health,
    /// Whether this process has seen the lease once.
    ready: AtomicBool,
}

impl Status {
    pub fn new(candidate: Candidate, hosts: Hosts) -> Self {
        let health = Health::new(candidate.clone(), MAX_TOLERABLE_EXPIRED);
        Self { hosts, candidate, health, ready: AtomicBool::new(false) }
    }

    /// Answers for ever.
    pub async fn serve(self, listener: TcpListener) -> Infallible {
        let status = Arc::new(self);
        let serve = |stream: TcpStream, _: Stop| {
            let status = status.clone();
            async move {
                let answer = service_fn(|request| status.answer(request));
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
        };
        Connections::new(CONNECTIONS, WhenFull::CloseOldest).accept(&listener, serve).await
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<String>, Infallible> {
        if let Err(message) = self.hosts.check(request.uri(), request.headers()) {
            return Ok(text(StatusCode::FORBIDDEN, message));
        }
        let probes = matches!(*request.method(), Method::GET | Method::HEAD);
        if probes && request.uri().path() == "/readyz" {
            return Ok(match self.is_ready() {
                Ok(()) => text(StatusCode::OK, "ok"),
                Err(message) => text(StatusCode::SERVICE_UNAVAILABLE, message),
            });
        }
        self.health.call(request).await
    }

    fn is_ready(&self) -> Result<(), String> {
        self.candidate.check(MAX_TOLERABLE_EXPIRED).map_err(|error| error.to_string())?;
        // A released lease has no holder for a moment. This process stays ready.
        if self.candidate.holder().is_some() {
            self.ready.store(true, Ordering::Relaxed);
        }
        if self.ready.load(Ordering::Relaxed) {
            return Ok(());
        }
        let trouble = self.candidate.trouble().map(|trouble| format!(": {trouble}"));
        Err(format!(
            "the lease {} has not been seen yet{}",
            self.candidate.lease(),
            trouble.unwrap_or_default()
        ))
    }
}

fn text(code: StatusCode, text: impl Into<String>) -> Response<String> {
    let mut response = Response::new(text.into() + "\n");
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
