//! The clients for lease calls, and how a fresh client replaces one that does not work (rule S9).

use super::{
    places::{Places, Rooms},
    source::{Connected, Source},
};
use crate::{
    api::{self, Authorized},
    leadership::Moment,
    lease::error::{ErrLock, ErrLockKind},
    rate_limited_log::RateLimitedLog,
};
use http::Method;
use jiff::Timestamp;
use kube_client::{Error, client::Body};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};
use tokio::{runtime::Handle, sync::Semaphore, time::Instant};
use tracing::Span;

/// How long making a client may take. After this, another thread may try.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many threads may make clients at once. A thread may hang, for example in a credential plugin, and cannot be stopped.
/// Then another thread can still make a client.
const THREADS: usize = 2;
/// The pool waits at least this long before it reads a source again.
const REFUSED: Duration = Duration::from_secs(5);
/// The pool waits at least this long before it tries another address.
const UNREACHABLE: Duration = Duration::from_secs(1);
/// A client is replaced this long before its credentials expire.
const EXPIRES: Duration = Duration::from_secs(60);

/// The clients of one source. All callers use the newest one.
pub(in crate::lease) struct Clients {
    source: Source,
    /// The runtime for the clients' tasks. It does not depend on which election asks, since other elections use the
    /// same client.
    runtime: Handle,
    newest: Mutex<Made>,
    /// Lets one client be made at a time, for [`PATIENCE`] at most.
    making: Arc<Semaphore>,
    /// Bounds the threads that make clients.
    threads: Arc<Semaphore>,
    rooms: Rooms,
    begun: Instant,
    failing: Mutex<RateLimitedLog>,
}

#[derive(Clone)]
struct Made {
    connected: Connected,
    generation: u64,
    at: Instant,
    /// When the last call over this client ended. A call that its time limit ended does not count.
    ended: Instant,
}

/// Why a fresh client is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease) enum Because {
    /// A call that was sent at this moment had no answer. Fresh connections are enough. If another call over the same client has
    /// ended since this moment, not even these are needed: the client works, and the connection of the lost call is closed.
    Silent(Instant),
    /// The address cannot be reached. Perhaps the API server has another address.
    Unreachable,
    /// The API server did not accept the credentials, there are none, they expire soon, or TLS failed: the source is read again.
    Refused,
}

/// The calls of one lock.
pub(in crate::lease) struct Caller {
    clients: Arc<Clients>,
    places: Places,
    last: Mutex<Last>,
}

/// The last call of a lock: over which client it was sent, and when.
struct Last {
    generation: u64,
    sent: Instant,
}

// === impl Clients ===

impl Clients {
    pub(in crate::lease) fn new(source: Source) -> Result<Arc<Self>, Error> {
        let (runtime, now) = (Handle::current(), Instant::now());
        let connected = source.connect(None, 0, &runtime)?;
        Ok(Arc::new(Self {
            source,
            runtime,
            newest: Mutex::new(Made { connected, generation: 0, at: now, ended: now }),
            making: Arc::new(Semaphore::new(1)),
            threads: Arc::new(Semaphore::new(THREADS)),
            rooms: Rooms::new(),
            begun: now,
            failing: Mutex::new(RateLimitedLog::new("cannot make a fresh client for lease calls")),
        }))
    }

    #[cfg(test)]
    pub(in crate::lease) fn of_test(client: &kube_client::Client) -> Arc<Self> {
        let client = client.clone();
        Self::new(Source::Clients(Box::new(move || Ok(client.clone())))).expect("a client")
    }

    pub(in crate::lease) fn caller(self: &Arc<Self>) -> Caller {
        let last = Last { generation: 0, sent: Instant::now() };
        Caller { clients: self.clone(), places: self.rooms.places(), last: Mutex::new(last) }
    }

    /// The newest client.
    pub(super) fn client(&self) -> Authorized {
        self.newest().connected.client.clone()
    }

    /// What the newest client is made of.
    pub(super) fn connected(&self) -> Connected {
        self.newest().connected.clone()
    }

    pub(super) fn is_newest(&self, read: Instant) -> bool {
        self.newest().connected.read == read
    }

    /// Notes that the API server did not accept what was read from the source at this moment.
    pub(super) fn refused(self: &Arc<Self>, read: Instant) {
        let Made { connected, generation, .. } = self.newest().clone();
        if connected.read == read {
            self.renew(generation, Because::Refused);
        }
    }

    fn newest(&self) -> MutexGuard<'_, Made> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to make a fresh client, if the client of the generation `instead_of` is still the newest. If an earlier attempt
    /// to make a client hangs, returns this as the trouble to report.
    fn renew(self: &Arc<Self>, instead_of: u64, because: Because) -> Option<&'static str> {
        let Ok(one) = self.making.clone().try_acquire_owned() else { return None };
        let Made { connected, generation, at, ended } = self.newest().clone();
        let is_needless = match because {
            Because::Silent(sent) => sent < ended,
            Because::Unreachable => at.elapsed() < UNREACHABLE,
            Because::Refused => connected.read.elapsed() < REFUSED,
        };
        if generation != instead_of || is_needless {
            return None;
        }
        let trouble = (self.threads.available_permits() < THREADS)
            .then_some("making a client does not end; check the credential plugin of the kubeconfig");
        let Ok(thread) = self.threads.clone().try_acquire_owned() else { return trouble };
        let (clients, span) = (self.clone(), Span::current());
        let (ends, ended) = mpsc::channel::<()>();
        let make = move || {
            // These are dropped from right to left. Dropping `_ends` comes last: it ends the wait below.
            let (_ends, clients, _thread) = (ends, clients, thread);
            let _in = clients.runtime.enter();
            span.in_scope(|| clients.succeed(because));
        };
        // This task ends after `PATIENCE`, so it does not keep the runtime from ending, as a thread that hangs would.
        self.runtime.spawn_blocking(move || {
            let _one = one;
            let _ = thread::Builder::new().spawn(make);
            let _ = ended.recv_timeout(PATIENCE);
        });
        trouble
    }

    /// Makes the next client. May block.
    fn succeed(&self, because: Because) {
        let Made { connected, generation, .. } = self.newest().clone();
        let last = (because != Because::Refused).then_some(&connected);
        let attempt = usize::try_from(generation).unwrap_or_default().saturating_add(1);
        match self.source.connect(last, attempt, &self.runtime) {
            Ok(connected) => {
                {
                    let mut newest = self.newest();
                    let now = Instant::now();
                    if newest.generation == generation {
                        *newest = Made { connected, generation: generation + 1, at: now, ended: now };
                    } // or else another thread was faster, and has read the sources later
                }
                // Log after the mutex of `newest` is free again: a log that blocks must not delay a call.
                self.failing().settle(self.now());
            }
            Err(error) => {
                let error = ErrLock::from(error);
                self.failing().raise(error.kind().as_str(), &error.explain(""), self.now());
            }
        }
    }

    fn failing(&self) -> MutexGuard<'_, RateLimitedLog> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time for the log. These clients may serve elections with different clocks, so they use none of those.
    fn now(&self) -> Moment {
        Moment::from_nanos(0).saturating_add(self.begun.elapsed())
    }
}

// === impl Caller ===

impl Caller {
    pub(in crate::lease) fn places(&self) -> &Places {
        &self.places
    }

    /// Makes one call and reads the whole answer: JSON, or the refusal.
    pub(in crate::lease) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ErrLock> {
        let (client, generation) = self.client();
        *self.last() = Last { generation, sent: Instant::now() };
        let outcome = api::call(&client, method, path.to_owned(), body).await;
        self.places.answered();
        {
            let mut newest = self.clients.newest();
            if newest.generation == generation {
                newest.ended = Instant::now();
            }
        }
        self.outcome(outcome, generation)
    }

    /// Opens a watch and returns its body.
    pub(in crate::lease) async fn watch(&self, path: &str) -> Result<Body, ErrLock> {
        let (client, generation) = self.client();
        self.outcome(api::open(&client, Method::GET, path.to_owned(), None).await, generation)
    }

    /// Begins to make a fresh client, if each later call over this client would fail too.
    fn outcome<T>(&self, outcome: Result<T, ErrLock>, generation: u64) -> Result<T, ErrLock> {
        let because = match &outcome {
            Ok(_) => None,
            Err(error) if error.client_is_dead() => Some(Because::Silent(Instant::now())),
            Err(error) => match error.kind() {
                ErrLockKind::Unauthenticated => Some(Because::Refused),
                ErrLockKind::Unreachable => Some(Because::Unreachable),
                _ => None,
            },
        };
        if let Some(because) = because {
            self.clients.renew(generation, because);
        }
        outcome
    }

    /// Notes that the last call had no answer. Begins to make a fresh client for later calls, unless another call over the same
    /// client has ended since. Calls that are under way keep their client. Returns the trouble to report, if there is one.
    pub(in crate::lease) fn reconnect(&self) -> Option<&'static str> {
        let (generation, sent) = {
            let last = self.last();
            (last.generation, last.sent)
        };
        self.places.unanswered();
        self.clients.renew(generation, Because::Silent(sent))
    }

    /// The newest client, and its generation.
    fn client(&self) -> (Authorized, u64) {
        let Made { connected, generation, .. } = self.clients.newest().clone();
        let soon = Timestamp::now().saturating_add(EXPIRES).unwrap_or(Timestamp::MAX);
        if connected.client.client.valid_until().is_some_and(|until| until < soon) {
            self.clients.renew(generation, Because::Refused);
        }
        (connected.client, generation)
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("generation", &self.newest().generation).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::*;
    use crate::{lease::news, testing::ApiServer};
    use kube_client::Client;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::{
        runtime::Builder,
        time::{sleep, timeout},
    };

    /// Elections of one pool may run in several runtimes.
    #[test]
    fn s9_a_fresh_client_outlives_its_callers_runtime() {
        let server = ApiServer::new();
        let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (of_pool, of_election) = (runtime(), runtime());
        let clients = of_pool.block_on(async { Clients::of_test(&Client::new(server.service(), "default")) });
        let caller = clients.caller();
        let is_made = async {
            caller.reconnect();
            while clients.newest().generation == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        of_election.block_on(async { timeout(Duration::from_secs(10), is_made).await }).unwrap();
        drop(of_election);
        of_pool.block_on(caller.call(Method::GET, &news::collection("default"), None)).unwrap();
    }

    /// A credential plugin hangs for more than two seconds, another thread makes a client meanwhile, and then the plugin ends.
    #[test]
    fn s9_client_that_was_made_late_replaces_no_newer_one() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (end, hung) = mpsc::channel::<()>();
        let (hung, service, count) = (Mutex::new(hung), ApiServer::new().service(), AtomicU32::new(0));
        let make = move || {
            let number = count.fetch_add(1, Ordering::SeqCst);
            if number == 1 {
                let _ = hung.lock().unwrap().recv();
            }
            Ok(Client::new(service.clone(), format!("made-{number}")))
        };
        let clients = runtime.block_on(async { Clients::new(Source::Clients(Box::new(make))) }).unwrap();
        let newest = || clients.client().client.default_namespace().to_owned();
        let caller = clients.caller();
        let is_made = async {
            while newest() == "made-0" {
                caller.reconnect();
                sleep(Duration::from_millis(10)).await;
            }
        };
        runtime.block_on(async { timeout(Duration::from_secs(60), is_made).await }).unwrap();
        assert_eq!(newest(), "made-2");
        drop(end);
        while clients.threads.available_permits() < THREADS {
            thread::yield_now();
        }
        assert_eq!(newest(), "made-2");
    }
}
