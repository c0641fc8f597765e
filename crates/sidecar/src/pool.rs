//! Connections to the API server, each for one request at a time.
//!
//! A request takes a connection that is idle. If there is none, it begins to connect, and takes the first that comes: the new
//! one, or one that another request has finished with. In the latter case its attempt is left to the next request that would
//! begin one. So there are never more connections and attempts than there were requests at once, however slowly the API
//! server accepts them.

use crate::unanswered::Unanswered;
use futures_util::FutureExt;
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
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tower::{BoxError, Service, ServiceExt};

/// The limit for the connection and its handshake, as in client-go. An answer may take as long as it likes: watches
/// and logs do.
const CONNECTING: Duration = Duration::from_secs(30);
/// An attempt that takes longer is not left to another request. The kernel then waits before it asks again.
const PROMPT: Duration = Duration::from_secs(1);
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
    waiting: VecDeque<oneshot::Sender<Connection<B>>>,
    /// Attempts of requests that have taken another connection.
    spare: Vec<Attempt<B>>,
}

struct Connection<B> {
    sender: SendRequest<B>,
    is_new: bool,
    idle_since: Instant,
}

/// An attempt to connect. Dropping it ends it.
struct Attempt<B> {
    task: AbortOnDropHandle<Result<Connection<B>, Unanswered>>,
    begun: Instant,
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

    async fn connection(&self) -> Result<Connection<B>, Unanswered> {
        let (mut attempt, handed) = {
            let mut state = self.state.lock();
            if let Some(connection) = state.take() {
                return Ok(connection);
            }
            state.settle();
            if let Some(connection) = state.take() {
                return Ok(connection);
            }
            (state.spare.pop().unwrap_or_else(|| self.attempt()), state.wait())
        };
        tokio::select! {
            biased;
            Ok(connection) = handed => {
                self.state.lock().spare.push(attempt);
                Ok(connection)
            }
            ended = &mut attempt.task => ended.unwrap_or_else(|panic| Err(Unanswered::Unconnected(panic.into()))),
        }
    }

    /// Connects in a task of its own. So the gate looks at the term between the step that connects and the one that sends
    /// (rule S2).
    fn attempt(&self) -> Attempt<B> {
        let connect = connect(self.connector.clone(), self.server.clone(), self.executor.clone());
        let task = tokio::spawn(async {
            let late = || io::Error::new(TimedOut, format!("no connection within {CONNECTING:?}"));
            timeout(CONNECTING, connect).await.unwrap_or_else(|_| Err(Unanswered::Unconnected(late().into())))
        });
        Attempt { task: AbortOnDropHandle::new(task), begun: Instant::now() }
    }

    /// Keeps the connection for the next request, from the end of the present answer on.
    fn keep(&self, mut sender: SendRequest<B>) {
        if sender.is_ready() {
            return self.state.lock().hand(Connection::new(sender, false));
        }
        let state = Arc::downgrade(&self.state);
        // It ends with the answer, or with the connection.
        tokio::spawn(async move {
            if sender.ready().await.is_ok()
                && let Some(state) = state.upgrade()
            {
                state.lock().hand(Connection::new(sender, false));
            }
        });
    }
}

async fn connect<C, E, B>(connector: C, server: Uri, executor: E) -> Result<Connection<B>, Unanswered>
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
        let mut state = state.lock();
        state.settle();
        state.idle.retain(Connection::is_fresh);
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
        Self { idle: Vec::new(), waiting: VecDeque::new(), spare: Vec::new() }
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

    /// Keeps the connections of spare attempts, and those attempts that may still succeed soon.
    fn settle(&mut self) {
        let Self { idle, spare, .. } = self;
        spare.retain_mut(|attempt| match (&mut attempt.task).now_or_never() {
            Some(made) => {
                let made = made.ok().and_then(Result::ok);
                idle.extend(made.map(|made| Connection { is_new: false, ..made }));
                false
            }
            None => attempt.begun.elapsed() < PROMPT,
        });
    }

    /// Resolves when another request has finished with its connection.
    fn wait(&mut self) -> oneshot::Receiver<Connection<B>> {
        let (hand, handed) = oneshot::channel();
        self.waiting.retain(|it| !it.is_closed());
        self.waiting.push_back(hand);
        handed
    }

    /// Gives the connection to the first request that still waits, or keeps it.
    fn hand(&mut self, mut connection: Connection<B>) {
        while let Some(first) = self.waiting.pop_front() {
            match first.send(connection) {
                Ok(()) => return,
                Err(back) => connection = back,
            }
        }
        self.idle.push(connection);
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

#[cfg(test)]
mod tests;
