//! A liveness probe, and a page that shows who leads: a service for any HTTP server.
//!
//! | the path ends in | answer |
//! | --- | --- |
//! | `/livez`, `/healthz` | 200 `ok`, or 503 and what is wrong: [`Candidate::check`], as in client-go's `HealthzAdaptor` |
//! | `/leader` | 200 and JSON, for people: who holds the lease, and why this candidate makes no progress |
//!
//! Other paths get 404, and other methods than GET and HEAD get 405. A follower is healthy, and so is a leader that
//! has lost the lease. A dead election is unhealthy
//! ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). Do not make readiness depend on
//! leadership: a rollout would wait for ever.
//!
//! ```
//! use hyper::server::conn::http1;
//! use hyper_util::rt::TokioIo;
//! use kube_leader_gate::{Candidate, health::Health};
//! use std::time::Duration;
//! use tokio::net::TcpListener;
//!
//! async fn serve(listener: TcpListener, candidate: Candidate) -> std::io::Result<()> {
//!     let health = Health::new(candidate, Duration::from_secs(20));
//!     loop {
//!         let (stream, _) = listener.accept().await?;
//!         tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), health.clone()));
//!     }
//! }
//! ```
//!
//! With axum: `router.route_service("/livez", health.clone()).route_service("/leader", health)`, since it is also a
//! tower service.
//!
//! ```sh
//! $ curl http://10.0.0.7:8080/leader
//! {"can_write":true,"holder":"my-controller-x2x7q","identity":"my-controller-x2x7q","is_leader":true,
//!  "lease":"my-namespace/my-controller","term":"5f0c9f4e-3e5b-4c51-8b0e-0d7bd1a4f6a9/12","time_left_seconds":98.2,
//!  "trouble":null,"writes_under_way":0}
//! ```
//!
//! It answers every client that can reach the server. The answers hold no secrets, only names of replicas and the API
//! server's errors for lease calls.

use crate::election::Candidate;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE},
};
use serde_json::json;
use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
    time::Duration,
};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers probes about one election; see the [module](self). Clones are cheap.
///
/// It never fails and never waits. It does not look at a request's body or headers.
#[derive(Clone, Debug)]
pub struct Health {
    candidate: Candidate,
    max_tolerable_expired: Duration,
}

// === impl Health ===

impl Health {
    /// Makes a probe. The probe fails if the election has ended. It also fails if this process holds the lease, but
    /// has not renewed it within the lease duration plus `max_tolerable_expired`.
    ///
    /// The core Kubernetes controllers use 20 s. Any duration works. With a very long one, the probe fails only if
    /// the election has ended.
    #[must_use]
    pub const fn new(candidate: Candidate, max_tolerable_expired: Duration) -> Self {
        Self { candidate, max_tolerable_expired }
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<String> {
        let head = request.method() == Method::HEAD;
        if !head && request.method() != Method::GET {
            let mut refusal = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".into());
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let path = request.uri().path();
        let mut answer = match path.rsplit_once('/').map(|(_, last)| last) {
            Some("livez" | "healthz") => self.probe(),
            Some("leader") => response(StatusCode::OK, JSON, self.page()),
            _ => response(
                StatusCode::NOT_FOUND,
                TEXT,
                "not found; there are /livez, /healthz and /leader\n".into(),
            ),
        };
        if head {
            // The length of the answer to a GET.
            let length = HeaderValue::from(answer.body().len());
            answer.headers_mut().insert(CONTENT_LENGTH, length);
            answer.body_mut().clear();
        }
        answer
    }

    fn probe(&self) -> Response<String> {
        match self.candidate.check(self.max_tolerable_expired) {
            Ok(()) => response(StatusCode::OK, TEXT, "ok\n".into()),
            Err(unhealthy) => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{unhealthy}\n")),
        }
    }

    fn page(&self) -> String {
        let candidate = &self.candidate;
        let page = json!({
            "lease": candidate.lease().to_string(),
            "identity": candidate.identity().as_str(),
            "holder": candidate.holder().as_deref(),
            "is_leader": candidate.is_leader(),
            "can_write": candidate.can_write(),
            "term": candidate.term().map(|term| term.to_string()),
            "time_left_seconds": candidate.time_left().map(|left| left.as_secs_f64()),
            "writes_under_way": candidate.writes_under_way(),
            "trouble": candidate.trouble().as_deref(),
        });
        format!("{page}\n")
    }
}

fn response(status: StatusCode, content_type: HeaderValue, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    // The answer may be out of date a moment later.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl<B> tower_service::Service<Request<B>> for Health {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.answer(&request)))
    }
}

impl<B> hyper::service::Service<Request<B>> for Health {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        ready(Ok(self.answer(&request)))
    }
}
