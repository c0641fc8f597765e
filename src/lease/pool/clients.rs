//! The clients for lease calls, and how a fresh client replaces one that did not answer (rule S9).

use crate::{
    api::{self, RateLimitedLog},
    leadership::Moment,
    lease::error::ErrLock,
};
use http::Method;
use kube_client::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout},
};
use tracing::Span;

/// How many calls of one pool run at once without waiting for each other. Each needs a connection while it runs.
const ROOM: usize = 16;
/// When the newest client is this old, all callers move to it.
const SETTLED: Duration = Duration::from_secs(60);

/// How long making a client may take. After this, another thread may try.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many threads may make clients at once: one may hang.
const THREADS: usize = 2;

type Make = Box<dyn Fn() -> Result<Client, kube_client::Error> + Send + Sync>;

/// Clients that one function makes. The newest is ready to use.
pub(in crate::lease) struct Clients {
    make: Make,
    /// The runtime for the clients' tasks. It does not depend on which election asks, since other elections use the
    /// same client.
    runtime: Handle,
    newest: Mutex<Made>,
    /// Lets one client be made at a time, for [`PATIENCE`] at most.
    making: Arc<Semaphore>,
    /// Bounds the threads that make clients. One that hangs, for example in a credential plugin, cannot be stopped.
    threads: Arc<Semaphore>,
    room: Semaphore,
    begun: Instant,
    failing: Mutex<RateLimitedLog>,
}

#[derive(Clone)]
struct Made {
    client: Client,
    generation: u64,
    at: Instant,
}

/// One lock's client. A caller keeps its client until one of its own calls is not answered.
pub(in crate::lease) struct Caller {
    clients: Arc<Clients>,
    /// How long a call waits for room. After that it is sent anyway, so that hanging calls do not delay others.
    patience: Duration,
    held: Mutex<Held>,
}

struct Held {
    made: Made,
    /// The newest generation at the time of the last call.
    newest_at_call: u64,
    /// The oldest generation that this caller may use. If there is no such client yet, it uses the newest one.
    at_least: u64,
}

// === impl Clients ===

impl Clients {
    pub(in crate::lease) fn new(
        make: impl Fn() -> Result<Client, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, kube_client::Error> {
        let make = move || make().map_err(api::without_secrets);
        let first = Made { client: make()?, generation: 0, at: Instant::now() };
        Ok(Arc::new(Self {
            make: Box::new(make),
            runtime: Handle::current(),
            newest: Mutex::new(first),
            making: Arc::new(Semaphore::new(1)),
            threads: Arc::new(Semaphore::new(THREADS)),
            room: Semaphore::new(ROOM),
            begun: Instant::now(),
            failing: Mutex::new(RateLimitedLog::new("cannot make a fresh client for lease calls")),
        }))
    }

    /// Makes clients from `config`, without gate and retries.
    pub(in crate::lease) fn from_config(config: &Config) -> Result<Arc<Self>, kube_client::Error> {
        let mut config = config.clone();
        // A renewal that is retried below would outlive its own timeout (rule S9).
        config.default_retry = false;
        // Each call has its own time limit, and a watch is often idle.
        config.read_timeout = None;
        Self::new(move || Ok(ClientBuilder::try_from(config.clone())?.build()))
    }

    pub(in crate::lease) fn caller(self: &Arc<Self>, patience: Duration) -> Caller {
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
                {
                    let mut newest = self.newest();
                    *newest = Made { client, generation: newest.generation + 1, at: Instant::now() };
                }
                // Not under the lock of the clients: a log that blocks must hold up no call.
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

    /// For the log. These clients may serve elections with other clocks.
    fn now(&self) -> Moment {
        Moment::from_nanos(0).saturating_add(self.begun.elapsed())
    }
}

// === impl Caller ===

impl Caller {
    /// Makes one call and reads the whole answer: JSON, or the refusal.
    pub(in crate::lease) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ErrLock> {
        let _room = timeout(self.patience, self.clients.room.acquire()).await;
        self.outcome(api::call(&self.client(), method, path.to_owned(), body).await)
    }

    /// Opens a watch and returns its body. A watch has its own connection, so it does not wait for room.
    pub(in crate::lease) async fn watch(&self, path: &str) -> Result<Body, ErrLock> {
        self.outcome(api::open(&self.client(), Method::GET, path.to_owned(), None).await)
    }

    /// A client that has ended would fail each later call too.
    fn outcome<T>(&self, outcome: Result<T, ErrLock>) -> Result<T, ErrLock> {
        if outcome.as_ref().is_err_and(ErrLock::client_is_dead) {
            self.reconnect();
        }
        outcome
    }

    /// Makes later calls use a client that was made after the last call was sent. If another caller has asked for
    /// such a client since, this one uses it too. Running calls are not affected. Returns what keeps it from that.
    pub(in crate::lease) fn reconnect(&self) -> Option<&'static str> {
        let at_least = {
            let mut held = self.held();
            held.at_least = held.newest_at_call + 1;
            held.at_least
        };
        let Clients { making, threads, runtime, .. } = &*self.clients;
        let Ok(one) = making.clone().try_acquire_owned() else { return None };
        if self.clients.newest().generation >= at_least {
            return None;
        }
        let trouble = (threads.available_permits() < THREADS)
            .then_some("making a client does not end; check the credential plugin of the kubeconfig");
        let Ok(thread) = threads.clone().try_acquire_owned() else { return trouble };
        let (clients, span) = (self.clients.clone(), Span::current());
        let (ends, ended) = mpsc::channel::<()>();
        // Reading certificates or running a credential plugin may block.
        let make = move || {
            // What comes first here is dropped last.
            let (_ends, clients, _thread) = (ends, clients, thread);
            let _in = clients.runtime.enter();
            span.in_scope(|| clients.succeed());
        };
        // This one ends in time, so it does not keep the runtime from ending.
        runtime.spawn_blocking(move || {
            let _one = one;
            let _ = thread::Builder::new().spawn(make);
            let _ = ended.recv_timeout(PATIENCE);
        });
        trouble
    }

    fn client(&self) -> Client {
        let newest = self.clients.newest().clone();
        let mut held = self.held();
        held.newest_at_call = newest.generation;
        // Until there is a client of that generation, use the newest one.
        let unanswered = held.made.generation < held.at_least;
        if unanswered || newest.at.elapsed() >= SETTLED {
            held.made = newest;
        }
        held.made.client.clone()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
    use tokio::{runtime::Builder, time::sleep};

    /// Elections of one pool may run in several runtimes.
    #[test]
    fn s9_a_fresh_client_outlives_its_callers_runtime() {
        let service = ApiServer::new().service();
        let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (of_pool, of_election) = (runtime(), runtime());
        let clients = of_pool
            .block_on(async { Clients::new(move || Ok(Client::new(service.clone(), "default"))).unwrap() });
        let caller = clients.caller(Duration::ZERO);
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
}
