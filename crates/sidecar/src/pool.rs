//! Connections to the API server, each for one request at a time.
//!
//! A request takes a connection that is idle. If there is none, it begins to connect, and takes the first that comes: the new
//! one, or one that another request has finished with. In the latter case its attempt is left to the next request that would
//! begin one. So there are about as many connections and attempts as there were requests at once, however slowly the API
//! server accepts them. Requests that wait have no order.

use crate::unanswered::Unanswered;
use http::{Request, Response, Uri};
use hyper::{
    body::{Body, Incoming},
    client::conn::http1::{self, SendRequest},
    rt::{Executor, Read, Write},
};
use std::{
    io::{self, ErrorKind::TimedOut},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::Notify,
    task::yield_now,
    time::{self, sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tower::{BoxError, Service, ServiceExt};

/// The limit for the connection and its handshake, as in client-go. An answer may take as long as it likes: watches
/// and logs do.
const CONNECTING: Duration = Duration::from_secs(30);
/// An attempt that takes longer is not left to another request. The kernel then waits before it asks again.
const PROMPT: Duration = Duration::from_secs(1);
/// So many new connections of one request may end before it is sent.
const YOUNG: u8 = 2;
/// Shorter than the API server's own limit of 90 s: a request on a connection that is just being closed is lost.
const IDLE: Duration = Duration::from_secs(60);

/// The API server answers with up to 4,096 characters of warnings, each in a header of its own. hyper takes 100 headers by
/// itself.
const MOST_HEADERS: usize = 512;

/// `C` connects, and `E` runs the connections.
pub(crate) struct Pool<C, E, B> {
    connector: C,
    server: Uri,
    executor: E,
    state: Arc<Shared<B>>,
    _sweep: AbortOnDropHandle<()>,
}

struct Shared<B> {
    state: Mutex<State<B>>,
    /// Wakes one request when a connection is idle.
    returned: Notify,
}

struct State<B> {
    /// The last one is the next to be used.
    idle: Vec<Connection<B>>,
    /// Attempts of requests that have taken another connection.
    spare: Vec<Attempt>,
}

struct Connection<B> {
    sender: SendRequest<B>,
    /// From then on it notices that a term is lost.
    begun: Instant,
    idle_since: time::Instant,
}

/// An attempt to connect. If it succeeds, the connection is idle. Dropping this ends it.
struct Attempt {
    task: AbortOnDropHandle<Result<(), Unanswered>>,
    begun: time::Instant,
}

// === impl Pool ===

impl<C, E, B> Pool<C, E, B>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send,
    E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Clone + Send + Sync + 'static,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    pub(crate) fn new(connector: C, server: Uri, executor: E) -> Self {
        let state = Arc::new(Shared { state: Mutex::default(), returned: Notify::new() });
        let sweep = AbortOnDropHandle::new(tokio::spawn(sweep(state.clone())));
        Self { connector, server, executor, state, _sweep: sweep }
    }

    /// Sends a request that the gate has admitted at this time. It takes another connection if the first ended before. If this
    /// is dropped before there is an answer, the connection ends, and with it the request.
    pub(crate) async fn send(
        self: Arc<Self>,
        mut request: Request<B>,
        admitted: Instant,
    ) -> Result<Response<Incoming>, Unanswered> {
        let mut young = 0;
        loop {
            let mut connection = self.connection(admitted).await?;
            young += u8::from(connection.begun >= admitted);
            match connection.sender.try_send_request(request).await {
                Ok(answer) => {
                    self.keep(connection);
                    return Ok(answer);
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if young < YOUNG => request = unsent,
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

    /// A connection that began before the gate's last look at the term, so that it notices if the term was lost since (rule
    /// S2). The gate looks before each poll.
    async fn connection(&self, mut looked: Instant) -> Result<Connection<B>, Unanswered> {
        loop {
            let connection = self.any_connection().await?;
            if connection.begun < looked {
                return Ok(connection);
            }
            self.state.put(connection);
            looked = Instant::now();
            yield_now().await;
        }
    }

    async fn any_connection(&self) -> Result<Connection<B>, Unanswered> {
        loop {
            let spare = {
                let mut state = self.state.lock();
                if let Some(connection) = state.take() {
                    return Ok(connection);
                }
                state.prune();
                state.spare.pop()
            };
            let is_own = spare.is_none();
            let mut attempt = spare.unwrap_or_else(|| self.attempt());
            let ended = tokio::select! {
                biased;
                connection = self.state.idle() => {
                    self.state.lock().spare.push(attempt);
                    return Ok(connection);
                }
                ended = &mut attempt.task => ended.unwrap_or_else(|panic| Err(Unanswered::Unconnected(panic.into()))),
            };
            // If it succeeded, another request has taken its connection.
            if is_own {
                ended?;
            }
        }
    }

    fn attempt(&self) -> Attempt {
        let connect = connect(self.connector.clone(), self.server.clone(), self.executor.clone());
        let state = Arc::downgrade(&self.state);
        let task = tokio::spawn(async move {
            let late = |_| io::Error::new(TimedOut, format!("no connection within {CONNECTING:?}"));
            let in_time = timeout(CONNECTING, connect).await;
            let connection = in_time.map_err(|it| Unanswered::Unconnected(late(it).into()))??;
            if let Some(state) = state.upgrade() {
                state.put(connection);
            }
            Ok(())
        });
        Attempt { task: AbortOnDropHandle::new(task), begun: time::Instant::now() }
    }

    /// Keeps the connection for the next request, when this one and its answer have ended.
    fn keep(&self, mut connection: Connection<B>) {
        if connection.sender.is_ready() {
            return self.state.put(connection);
        }
        let state = Arc::downgrade(&self.state);
        // It ends with the connection too.
        tokio::spawn(async move {
            if connection.sender.ready().await.is_ok()
                && let Some(state) = state.upgrade()
            {
                state.put(connection);
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
    let (mut sender, connection) =
        http1::Builder::new().max_headers(MOST_HEADERS).handshake(stream).await.map_err(unsent)?;
    executor.execute(Box::pin(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!("a connection to the API server failed: {error}");
        }
    }));
    let begun = Instant::now();
    sender.ready().await.map_err(unsent)?;
    Ok(Connection { sender, begun, idle_since: time::Instant::now() })
}

async fn sweep<B>(state: Arc<Shared<B>>) {
    loop {
        sleep(IDLE / 4).await;
        state.lock().prune();
    }
}

// === impl Shared ===

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, connection: Connection<B>) {
        self.lock().idle.push(Connection { idle_since: time::Instant::now(), ..connection });
        self.returned.notify_one();
    }

    /// The next connection that is idle. Cancel-safe.
    async fn idle(&self) -> Connection<B> {
        loop {
            let mut returned = pin!(self.returned.notified());
            // Two connections that come between the look and the wait would wake one request alone.
            returned.as_mut().enable();
            if let Some(connection) = self.lock().take() {
                return connection;
            }
            returned.await;
        }
    }
}

// === impl State ===

impl<B> Default for State<B> {
    fn default() -> Self {
        Self { idle: Vec::new(), spare: Vec::new() }
    }
}

impl<B> State<B> {
    fn take(&mut self) -> Option<Connection<B>> {
        self.idle.pop().filter(Connection::is_fresh)
    }

    /// Ends what has been idle for too long, and attempts that will not succeed soon.
    fn prune(&mut self) {
        self.idle.retain(Connection::is_fresh);
        self.spare.retain(|it| !it.task.is_finished() && it.begun.elapsed() < PROMPT);
    }
}

// === impl Connection ===

impl<B> Connection<B> {
    fn is_fresh(&self) -> bool {
        self.idle_since.elapsed() < IDLE
    }
}

#[cfg(test)]
mod tests;
