//! Probes, and who leads.
//!
//! `/healthz`: the election lives, as client-go's check has it. `/readyz`: the lease has been seen, so the API server can be
//! reached; *not* that this process leads, since a rollout would wait for that for ever. `/leader`: JSON.

use crate::{
    hosts::Hosts,
    reply,
    serve::{Connections, Stop},
};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kube_leader_gate::Leader;
use serde_json::json;
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
/// Probes come one by one.
const CONNECTIONS: usize = 64;
const IDLE: Duration = Duration::from_secs(30);
const LONGEST_HEAD: usize = 8 * 1024;

pub struct Status {
    hosts: Hosts,
    leader: Leader,
    /// The lease has been seen once.
    ready: AtomicBool,
}

impl Status {
    pub fn new(leader: Leader, hosts: Hosts) -> Self {
        Self { hosts, leader, ready: AtomicBool::new(false) }
    }

    /// Answers for ever.
    pub async fn serve(self, listener: TcpListener) -> Infallible {
        let status = Arc::new(self);
        let serve = |stream: TcpStream, _: Stop| {
            let status = status.clone();
            async move {
                let answer = service_fn(|request| {
                    let answer = status.answer(&request);
                    async { Ok::<_, Infallible>(answer) }
                });
                // The error is the caller's doing.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(IDLE)
                    .max_header_size(LONGEST_HEAD)
                    .max_buf_size(LONGEST_HEAD)
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            }
        };
        Connections::new(CONNECTIONS).accept(&listener, serve).await
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if let Err(message) = self.hosts.check(request.uri(), request.headers()) {
            return text(StatusCode::FORBIDDEN, message);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
        }
        match request.uri().path() {
            "/healthz" => probe(self.leader.check(MAX_TOLERABLE_EXPIRED).map_err(|error| error.to_string())),
            "/readyz" => probe(self.is_ready()),
            "/leader" => reply::json(
                StatusCode::OK,
                &json!({
                    "identity": self.leader.identity().as_str(),
                    "holder": self.leader.holder().as_deref(),
                    "leading": self.leader.is_leader(),
                    "term": self.leader.term().map(|term| term.to_string()),
                }),
            ),
            _ => text(StatusCode::NOT_FOUND, "allowed: /healthz, /readyz, /leader"),
        }
    }

    fn is_ready(&self) -> Result<(), String> {
        self.leader.check(MAX_TOLERABLE_EXPIRED).map_err(|error| error.to_string())?;
        // A released lease has no holder for a moment; that takes nothing away.
        if self.leader.holder().is_some() {
            self.ready.store(true, Ordering::Relaxed);
        }
        if self.ready.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(format!("the lease {} has not been seen yet", self.leader.lease()))
    }
}

fn probe(outcome: Result<(), String>) -> Response<Full<Bytes>> {
    match outcome {
        Ok(()) => text(StatusCode::OK, "ok"),
        Err(message) => text(StatusCode::SERVICE_UNAVAILABLE, message),
    }
}

fn text(code: StatusCode, text: impl Into<String>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.into() + "\n"));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
