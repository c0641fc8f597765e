//! Probes, and who leads.
//!
//! `/healthz` and `/leader` are [`Health`]'s. `/readyz`: the lease has been seen, so the API server can be reached; *not*
//! that this process leads, since a rollout would wait for that for ever.

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

/// As the core Kubernetes controllers have it.
const MAX_TOLERABLE_EXPIRED: Duration = Duration::from_secs(20);
/// Probes come one by one. Beyond it, the oldest connection is closed, so that idle callers starve no probe.
const CONNECTIONS: usize = 64;
/// For the head of the one request that a connection is for.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_HEAD: usize = 8 * 1024;

pub struct Status {
    hosts: Hosts,
    candidate: Candidate,
    health: Health,
    /// The lease has been seen once.
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
                // The error is the caller's doing.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(PATIENCE)
                    .keep_alive(false)
                    // The answer is ready at once, whether the caller has ended its side or not.
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
        // A released lease has no holder for a moment; that takes nothing away.
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
