//! Probes, and a page that shows who leads, for any web server.
//!
//! ```
//! use kube_leader_gate::{Election, health::Health};
//! use std::time::Duration;
//!
//! # tokio_test::block_on(async {
//! let election = Election::builder("my-namespace", "my-controller").build_alone()?; // or `build(&config)`
//! let candidate = election.candidate();
//! let health = Health::new(candidate.clone(), Duration::from_secs(20)); // give it to your web server
//! assert_eq!(health.answer("/readyz").status, 503); // the election has not begun
//!
//! let running = election.start();
//! candidate.elected().await;
//! assert_eq!(health.answer("/readyz").status, 200);
//! assert!(health.answer("/leader").body.contains(r#""can_write":true"#));
//!
//! running.stop().await;
//! assert_eq!(health.answer("/livez").status, 503); // this process will not lead again
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! | the path ends in, perhaps with a `/` behind it | answer |
//! | --- | --- |
//! | `/livez`, `/healthz` | 200 `ok`, or 503 and what is wrong: [`Candidate::check`] |
//! | `/readyz` | 200 `ok`, or 503 and each reason, one on a line: [`Candidate::check_ready`], and [your own conditions](Health::ready_if) |
//! | `/leader` | 200 and JSON, for people: who holds the lease as far as this process has seen, and why this candidate makes no progress |
//!
//! Other paths get 404. A follower is healthy and ready, and so is a leader that has lost the lease. While the API
//! server is away, a replica is healthy and not ready: a restart does not mend that. A dead election is neither
//! ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). Do not make readiness depend on
//! leadership: a rollout would wait for ever. The [guide](crate::guide::production#readiness) says which probe should
//! ask what.
//!
//! [`Health::answer`] needs no type of an HTTP library. The [guide](crate::guide::getting_started#probes) names
//! the code for axum, actix-web and hyper. [`Health`] is also a tower service and a hyper service. These refuse other
//! methods than GET and HEAD with 405.
//!
//! ```sh
//! $ curl http://10.0.0.7:8080/leader
//! {"can_write":true,"holder":"my-controller-x2x7q","identity":"my-controller-x2x7q","is_leader":true,
//!  "lease":"my-namespace/my-controller","opening":null,"term":"5f0c9f4e-3e5b-4c51-8b0e-0d7bd1a4f6a9/12","time_left_seconds":98.2,
//!  "trouble":null,"writes_under_way":0}
//! ```
//!
//! It answers every client that can reach the server. The answers hold no secrets, only names of replicas, the API
//! server's errors for lease calls, and what your own conditions say.
//!
//! [`Candidate::check`]: crate::Candidate::check
//! [`Candidate::check_ready`]: crate::Candidate::check_ready

use crate::{election::Candidate, one_line::one_line};
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE},
};
use serde_json::json;
use std::{
    convert::Infallible,
    fmt,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Answers probes about one election; see the [module](crate::health). Clones are cheap.
///
/// It never fails and never waits.
#[derive(Clone, Debug)]
pub struct Health {
    candidate: Candidate,
    max_tolerable_expired: Duration,
    conditions: Vec<Condition>,
}

/// The answer to one request, for any web server. It may be out of date a moment later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it does nothing unless it is sent"]
#[non_exhaustive]
pub struct Answer {
    /// The status code: 200, 404 or 503.
    pub status: u16,
    /// The value of the header `Content-Type`.
    pub content_type: &'static str,
    /// The text to send. It ends with a newline.
    pub body: String,
}

/// The same, with the types of `http`.
type Found = (StatusCode, &'static str, String);

/// A condition of the program for its readiness.
#[derive(Clone)]
struct Condition(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

// === impl Health ===

impl Health {
    /// Makes the probes of an election. `/livez` fails if the election has ended. It also fails if the election was
    /// not driven, or its task did not run, for the lease duration plus `max_tolerable_expired`. `/readyz` does not use
    /// this time.
    ///
    /// The core Kubernetes controllers use 20 s. Any duration works. With a very long one, `/livez` fails only if the
    /// election has ended.
    #[must_use]
    pub const fn new(candidate: Candidate, max_tolerable_expired: Duration) -> Self {
        Self { candidate, max_tolerable_expired, conditions: Vec::new() }
    }

    /// Adds a condition for `/readyz`: the replica is ready only if `condition` returns `Ok` too. The error says what is
    /// missing, in words for a person; it becomes [one line](crate::extension::one_line). Call this again for each further condition.
    ///
    /// Each request to `/readyz` calls `condition`, so it must not block. A panic reaches the web server.
    #[must_use]
    pub fn ready_if<E: fmt::Display>(
        mut self,
        condition: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        let condition = move || condition().map_err(|error| one_line(&error.to_string()));
        self.conditions.push(Condition(Arc::new(condition)));
        self
    }

    /// Answers a GET of `path`. A query at its end is ignored. For a HEAD, send the same without the body.
    pub fn answer(&self, path: &str) -> Answer {
        let (status, content_type, body) = self.find(path);
        Answer { status: status.as_u16(), content_type, body }
    }

    fn find(&self, path: &str) -> Found {
        let path = path.split('?').next().unwrap_or_default();
        match path.trim_end_matches('/').rsplit_once('/').map(|(_, last)| last) {
            Some("livez" | "healthz") => {
                let fault = self.candidate.check(self.max_tolerable_expired).err();
                verdict(fault.map(|fault| fault.to_string()))
            }
            Some("readyz") => verdict(self.missing()),
            Some("leader") => (StatusCode::OK, JSON, self.page()),
            _ => text(StatusCode::NOT_FOUND, "not found; there are /livez, /healthz, /readyz and /leader"),
        }
    }

    fn missing(&self) -> Vec<String> {
        let election = self.candidate.check_ready().err().map(|error| error.to_string());
        let own = self.conditions.iter().filter_map(|Condition(condition)| condition().err());
        election.into_iter().chain(own).collect()
    }

    fn page(&self) -> String {
        let (candidate, leadership) = (&self.candidate, self.candidate.leadership());
        let page = json!({
            "lease": candidate.lease().to_string(),
            "identity": candidate.identity().as_str(),
            "holder": candidate.holder().as_deref(),
            "is_leader": candidate.is_leader(),
            "can_write": candidate.can_write(),
            "opening": candidate.opening().map(|term| term.to_string()),
            "term": candidate.term().map(|term| term.to_string()),
            "time_left_seconds": leadership.time_left().map(|left| left.as_secs_f64()),
            "writes_under_way": leadership.writes_under_way(),
            "trouble": candidate.trouble().as_deref(),
        });
        format!("{page}\n")
    }
}

fn text(status: StatusCode, line: &str) -> Found {
    (status, TEXT, format!("{line}\n"))
}

/// The answer of a probe that found these faults.
fn verdict(faults: impl IntoIterator<Item = String>) -> Found {
    let faults: Vec<_> = faults.into_iter().collect();
    if faults.is_empty() {
        return text(StatusCode::OK, "ok");
    }
    text(StatusCode::SERVICE_UNAVAILABLE, &faults.join("\n"))
}

// === impl Condition ===

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// Answers a request. It does not look at the body or the headers.
fn respond<B>(health: &Health, request: &Request<B>) -> Response<String> {
    let head = request.method() == Method::HEAD;
    if !head && request.method() != Method::GET {
        let mut refusal = response(text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD"));
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    let mut response = response(health.find(request.uri().path()));
    if head {
        // The length of the answer to a GET.
        let length = HeaderValue::from(response.body().len());
        response.headers_mut().insert(CONTENT_LENGTH, length);
        response.body_mut().clear();
    }
    response
}

fn response((status, content_type, body): Found) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
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
        ready(Ok(respond(self, &request)))
    }
}

impl<B> hyper::service::Service<Request<B>> for Health {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        ready(Ok(respond(self, &request)))
    }
}
