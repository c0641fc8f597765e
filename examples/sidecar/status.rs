//! Probes, and the name of the leader: [`Health`] answers `/healthz`, `/readyz` and `/leader`.

use crate::{
    hosts::Hosts,
    serve::{Connections, Stop, WhenFull},
};
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use kube_leader_gate::{Candidate, health::Health};
use std::{convert::Infallible, sync::Arc, time::Duration};
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
    health: Health,
}

impl Status {
    pub fn new(candidate: Candidate, hosts: Hosts) -> Self {
        Self { hosts, health: Health::new(candidate, MAX_TOLERABLE_EXPIRED) }
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
            return Ok(forbidden(message));
        }
        self.health.call(request).await
    }
}

fn forbidden(message: impl Into<String>) -> Response<String> {
    let mut response = Response::new(message.into() + "\n");
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
