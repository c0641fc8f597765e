//! The clients that lease calls go over, and their succession after calls without an answer (rule S9).

use super::{LockError, LockErrorKind, lines};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube_client::{Client, client::Body};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tracing::Span;

/// So many calls of one pool share the connections without waiting for each other; each needs one while it lasts.
const ROOM: usize = 16;
/// The newest client that has stood for so long is everybody's.
const SETTLED: Duration = Duration::from_secs(60);

type Make = Box<dyn Fn() -> Result<Client, kube_client::Error> + Send + Sync>;

/// Clients of one making, the newest at hand.
pub(super) struct Clients {
    make: Make,
    newest: Mutex<Made>,
    /// Making one may block, and cannot be stopped: one at a time.
    making: Arc<Semaphore>,
    room: Semaphore,
}

#[derive(Clone)]
struct Made {
    client: Client,
    generation: u64,
    at: Instant,
}

/// One lock's way to the API server. It stays with its client until a call goes unanswered; the others stay with theirs.
pub(super) struct Caller {
    clients: Arc<Clients>,
    /// How long a call waits for room before it goes out all the same: what hangs may hold up nobody else.
    patience: Duration,
    held: Mutex<Held>,
}

struct Held {
    made: Made,
    /// The newest generation at the time of the last call.
    newest_at_call: u64,
    /// The client to use is at least of this generation, once there is one.
    at_least: u64,
}

// === impl Clients ===

impl Clients {
    pub(super) fn new(
        make: impl Fn() -> Result<Client, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, kube_client::Error> {
        let first = Made { client: make()?, generation: 0, at: Instant::now() };
        Ok(Arc::new(Self {
            make: Box::new(make),
            newest: Mutex::new(first),
            making: Arc::new(Semaphore::new(1)),
            room: Semaphore::new(ROOM),
        }))
    }

    pub(super) fn caller(self: &Arc<Self>, patience: Duration) -> Caller {
        let made = self.newest().clone();
        let held = Mutex::new(Held { newest_at_call: made.generation, at_least: 0, made });
        Caller { clients: self.clone(), patience, held }
    }

    fn newest(&self) -> MutexGuard<'_, Made> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next client. May block.
    fn succeed(&self) {
        match (self.make)() {
            Ok(client) => {
                let mut newest = self.newest();
                *newest = Made { client, generation: newest.generation + 1, at: Instant::now() };
            }
            Err(error) => tracing::warn!("no fresh client for lease calls: {error}"),
        }
    }
}

// === impl Caller ===

impl Caller {
    /// One call, read to its end: JSON, or what was refused.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, LockError> {
        let _room = timeout(self.patience, self.clients.room.acquire()).await;
        let response = self.send(method, path, body).await?;
        let status = response.status();
        let answer = collect(response.into_body()).await?;
        if !status.is_success() {
            return Err(refusal(status, &answer));
        }
        serde_json::from_slice(&answer).map_err(|error| {
            LockError::new(LockErrorKind::Garbage, format!("the answer is not JSON: {error}"))
        })
    }

    /// The body of a watch. It has a connection of its own for as long as it lasts, and waits for no room.
    pub(super) async fn watch(&self, path: &str) -> Result<Body, LockError> {
        let response = self.send(Method::GET, path, None).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(status, &collect(response.into_body()).await?));
        }
        Ok(response.into_body())
    }

    /// Sees to it that later calls use a client that was made after the last call was sent. If another caller has had
    /// one made since, or is about to, that one will do. Calls that are under way are not touched.
    pub(super) fn reconnect(&self) {
        let at_least = {
            let mut held = self.held();
            held.at_least = held.newest_at_call + 1;
            held.at_least
        };
        let Ok(one) = self.clients.making.clone().try_acquire_owned() else { return };
        if self.clients.newest().generation >= at_least {
            return;
        }
        let (clients, span) = (self.clients.clone(), Span::current());
        // Reading certificates or running a credential plugin may block.
        tokio::task::spawn_blocking(move || {
            let _one = one;
            span.in_scope(|| clients.succeed());
        });
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Body>, LockError> {
        let body = body.map_or_else(Vec::new, |value| value.to_string().into_bytes());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(Body::from(body))
            .map_err(|error| LockError::new(LockErrorKind::Refused, error.to_string()))?;
        let sent = self.client().send(request).await;
        sent.map_err(|error| LockError::new(LockErrorKind::Unreachable, chain(&error)))
    }

    fn client(&self) -> Client {
        let newest = self.clients.newest().clone();
        let mut held = self.held();
        held.newest_at_call = newest.generation;
        let unanswered = held.made.generation < held.at_least && held.at_least <= newest.generation;
        if unanswered || newest.at.elapsed() >= SETTLED {
            held.made = newest;
        }
        held.made.client.clone()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn collect(body: Body) -> Result<Bytes, LockError> {
    let read = Limited::new(body, lines::LONGEST).collect().await;
    read.map(http_body_util::Collected::to_bytes)
        .map_err(|error| LockError::new(LockErrorKind::Unreachable, format!("the answer broke off: {error}")))
}

/// An answer that is no success, in words: the Status of the API server, or the beginning of whatever came instead.
fn refusal(status: StatusCode, answer: &[u8]) -> LockError {
    let parsed = serde_json::from_slice::<Value>(answer).ok();
    let message =
        parsed.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str).map_or_else(
            || String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned(),
            |message| message.chars().take(500).collect(),
        );
    LockError::new(LockErrorKind::of(status), format!("{}: {message}", status.as_u16()))
}

/// An error with its causes, outermost first.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..8 {
        let Some(error) = cause else { break };
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("generation", &self.newest().generation).finish_non_exhaustive()
    }
}
