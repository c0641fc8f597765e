//! Connections to the API server, each for one request at a time.
//!
//! A request takes a connection that waits, or the first that comes: a new one, or one that another request has finished
//! with. There are never more attempts to connect than requests that wait. So callers never need more connections than
//! there are callers, however slowly the API server accepts them.

use crate::unanswered::Unanswered;
use http::{Request, Response, Uri};
use hyper::{
    body::{Body, Incoming},
    client::conn::http1::{self, SendRequest},
    rt::{Executor, Read, Write},
};
use std::{
    collections::VecDeque,
    io::{self, ErrorKind::TimedOut},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tower::{BoxError, Service, ServiceExt};

/// The limit for the connection and its handshake, as in client-go. An answer may take as long as it likes: watches
/// and logs do.
const CONNECTING: Duration = Duration::from_secs(30);
/// Shorter than the API server's own limit of 90 s: a request on a connection that is just being closed is lost.
const IDLE: Duration = Duration::from_secs(60);

/// `C` connects, and `E` runs the connections.
pub(crate) struct Pool<C, E, B> {
    connector: C,
    server: Uri,
    executor: E,
    state: Arc<Shared<B>>,
    _sweep: AbortOnDropHandle<()>,
}

struct Shared<B>(Mutex<State<B>>);

struct State<B> {
    /// The last one is the next to be used.
    idle: Vec<Connection<B>>,
    waiting: VecDeque<oneshot::Sender<Outcome<B>>>,
    connecting: usize,
    attempts: JoinSet<()>,
}

struct Connection<B> {
    sender: SendRequest<B>,
    is_new: bool,
    idle_since: Instant,
}

/// A connection for a request that waits, or why there is none.
type Outcome<B> = Result<Connection<B>, Unanswered>;

/// An attempt to connect. Its end passes on its outcome, even if it panics.
struct Attempt<B> {
    state: Weak<Shared<B>>,
    outcome: Option<Outcome<B>>,
}

// === impl Pool ===

impl<C, E, B> Pool<C, E, B>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Response: Read + Write + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send,
    E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Clone + Send + 'static,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    pub(crate) fn new(connector: C, server: Uri, executor: E) -> Self {
        let state = Arc::new(Shared(Mutex::default()));
        let sweep = AbortOnDropHandle::new(tokio::spawn(sweep(state.clone())));
        Self { connector, server, executor, state, _sweep: sweep }
    }

    /// Sends the request, on another connection if the first has ended before. If this is dropped, the connection ends, and
    /// with it the request.
    pub(crate) async fn send(
        self: Arc<Self>,
        mut request: Request<B>,
    ) -> Result<Response<Incoming>, Unanswered> {
        loop {
            let Connection { mut sender, is_new, .. } = self.connection().await?;
            match sender.try_send_request(request).await {
                Ok(answer) => {
                    self.keep(sender);
                    return Ok(answer);
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    unsent => {
                        return Err(Unanswered::CutOff {
                            is_sent: unsent.is_none(),
                            error: failed.into_error(),
                        });
                    }
                },
            }
        }
    }

    async fn connection(&self) -> Outcome<B> {
        let handed = {
            let mut state = self.state.lock();
            if let Some(connection) = state.take() {
                return Ok(connection);
            }
            let (hand, handed) = oneshot::channel();
            state.waiting.retain(|it| !it.is_closed());
            state.waiting.push_back(hand);
            while state.attempts.try_join_next().is_some() {}
            // In a task of its own: so the gate looks at the term between the step that connects and the one that sends (rule
            // S2).
            if state.connecting < state.waiting.len() {
                state.connecting += 1;
                state.attempts.spawn(self.attempt());
            }
            handed
        };
        // The state has gone only if the pool has.
        handed.await.unwrap_or_else(|error| Err(Unanswered::Unconnected(error.into())))
    }

    fn attempt(&self) -> impl Future<Output = ()> + Send + 'static {
        let (connector, server, executor) =
            (self.connector.clone(), self.server.clone(), self.executor.clone());
        let attempt = Attempt { state: Arc::downgrade(&self.state), outcome: None };
        async move {
            let late = || io::Error::new(TimedOut, format!("no connection within {CONNECTING:?}"));
            let connected = timeout(CONNECTING, connect(connector, server, executor)).await;
            attempt.end(connected.unwrap_or_else(|_| Err(Unanswered::Unconnected(late().into()))));
        }
    }

    /// Keeps the connection for the next request, from the end of the present answer on.
    fn keep(&self, mut sender: SendRequest<B>) {
        if sender.is_ready() {
            return self.state.lock().hand(Ok(Connection::new(sender, false)));
        }
        let state = Arc::downgrade(&self.state);
        // It ends with the answer, or with the connection.
        tokio::spawn(async move {
            if sender.ready().await.is_ok()
                && let Some(state) = state.upgrade()
            {
                state.lock().hand(Ok(Connection::new(sender, false)));
            }
        });
    }
}

async fn connect<C, E, B>(connector: C, server: Uri, executor: E) -> Outcome<B>
where
    C: Service<Uri>,
    C::Response: Read + Write + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
    E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>>,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let unsent = |error| Unanswered::CutOff { error, is_sent: false };
    let stream = connector.oneshot(server).await.map_err(|error| Unanswered::Unconnected(error.into()))?;
    let (mut sender, connection) = http1::handshake(stream).await.map_err(unsent)?;
    executor.execute(Box::pin(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!("a connection to the API server failed: {error}");
        }
    }));
    sender.ready().await.map_err(unsent)?;
    Ok(Connection::new(sender, true))
}

/// Closes what has been idle for too long.
async fn sweep<B>(state: Arc<Shared<B>>) {
    loop {
        sleep(IDLE / 4).await;
        state.lock().idle.retain(Connection::is_fresh);
    }
}

// === impl Shared ===

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl<B> Default for State<B> {
    fn default() -> Self {
        Self { idle: Vec::new(), waiting: VecDeque::new(), connecting: 0, attempts: JoinSet::new() }
    }
}

impl<B> State<B> {
    fn take(&mut self) -> Option<Connection<B>> {
        while let Some(connection) = self.idle.pop() {
            if connection.is_fresh() && connection.sender.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Gives it to the first request that still waits, or keeps it.
    fn hand(&mut self, mut outcome: Outcome<B>) {
        while let Some(first) = self.waiting.pop_front() {
            match first.send(outcome) {
                Ok(()) => return,
                Err(back) => outcome = back,
            }
        }
        self.idle.extend(outcome);
    }
}

// === impl Connection ===

impl<B> Connection<B> {
    fn new(sender: SendRequest<B>, is_new: bool) -> Self {
        Self { sender, is_new, idle_since: Instant::now() }
    }

    fn is_fresh(&self) -> bool {
        self.idle_since.elapsed() < IDLE
    }
}

// === impl Attempt ===

impl<B> Attempt<B> {
    fn end(mut self, outcome: Outcome<B>) {
        self.outcome = Some(outcome);
    }
}

impl<B> Drop for Attempt<B> {
    fn drop(&mut self) {
        let failed = || Err(Unanswered::Unconnected("the attempt to connect has failed".into()));
        let outcome = self.outcome.take().unwrap_or_else(failed);
        if let Some(state) = self.state.upgrade() {
            let mut state = state.lock();
            state.connecting -= 1;
            state.hand(outcome);
        }
    }
}

#[cfg(test)]
mod tests;
