//! What is answered, without a type of any HTTP library.

use crate::election::Candidate;
use http::StatusCode;
use serde_json::json;
use std::{fmt, sync::Arc, time::Duration};

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
pub struct Answer {
    status: StatusCode,
    content_type: &'static str,
    body: String,
}

/// A condition of the program for its readiness.
#[derive(Clone)]
struct Condition(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

// === impl Health ===

impl Health {
    /// Makes the probes of an election. `/livez` fails if the election has ended. It also fails if the election was
    /// not driven, or did not renew the lease that it holds, within the lease duration plus `max_tolerable_expired`.
    /// `/readyz` does not use this time.
    ///
    /// The core Kubernetes controllers use 20 s. Any duration works. With a very long one, `/livez` fails only if the
    /// election has ended.
    #[must_use]
    pub const fn new(candidate: Candidate, max_tolerable_expired: Duration) -> Self {
        Self { candidate, max_tolerable_expired, conditions: Vec::new() }
    }

    /// Adds a condition for `/readyz`: the replica is ready only if `condition` returns `Ok` too. The error says what is
    /// missing, in words for a person. Call this again for each further condition.
    ///
    /// Each request to `/readyz` calls `condition`, so it must not block. A panic reaches the web server.
    ///
    /// ```
    /// use kube_leader_gate::{Candidate, health::Health};
    /// use std::{sync::{Arc, atomic::{AtomicBool, Ordering}}, time::Duration};
    ///
    /// fn probes(candidate: Candidate, caches_are_filled: Arc<AtomicBool>) -> Health {
    ///     Health::new(candidate, Duration::from_secs(20)).ready_if(move || {
    ///         if caches_are_filled.load(Ordering::Relaxed) { Ok(()) } else { Err("the caches are not filled yet") }
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn ready_if<E: fmt::Display>(
        mut self,
        condition: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push(Condition(Arc::new(move || condition().map_err(|error| error.to_string()))));
        self
    }

    /// Answers a GET of `path`. A query at its end is ignored. For a HEAD, send the same without the body.
    pub fn answer(&self, path: &str) -> Answer {
        let path = path.split('?').next().unwrap_or_default();
        match path.rsplit_once('/').map(|(_, last)| last) {
            Some("livez" | "healthz") => {
                let fault = self.candidate.check(self.max_tolerable_expired).err();
                Answer::verdict(fault.map(|fault| fault.to_string()))
            }
            Some("readyz") => Answer::verdict(self.missing()),
            Some("leader") => Answer { status: StatusCode::OK, content_type: JSON, body: self.page() },
            _ => Answer::text(
                StatusCode::NOT_FOUND,
                "not found; there are /livez, /healthz, /readyz and /leader",
            ),
        }
    }

    fn missing(&self) -> Vec<String> {
        let election = self.candidate.check_ready().err().map(|error| error.to_string());
        let own = self.conditions.iter().filter_map(|Condition(condition)| condition().err());
        election.into_iter().chain(own).collect()
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

// === impl Answer ===

impl Answer {
    /// The status code: 200, 404 or 503.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The value of the header `Content-Type`.
    #[must_use]
    pub const fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// The text to send. It ends with a newline.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The text to send, owned.
    #[must_use]
    pub fn into_body(self) -> String {
        self.body
    }

    pub(super) fn text(status: StatusCode, line: &str) -> Self {
        Self { status, content_type: TEXT, body: format!("{line}\n") }
    }

    pub(super) const fn status_code(&self) -> StatusCode {
        self.status
    }

    /// The answer of a probe that found these faults.
    fn verdict(faults: impl IntoIterator<Item = String>) -> Self {
        let faults: Vec<_> = faults.into_iter().collect();
        if faults.is_empty() {
            return Self::text(StatusCode::OK, "ok");
        }
        Self::text(StatusCode::SERVICE_UNAVAILABLE, &faults.join("\n"))
    }
}

// === impl Condition ===

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}
