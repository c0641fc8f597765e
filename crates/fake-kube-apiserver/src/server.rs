//! The server itself, apart from how requests reach it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault::Fault;
use crate::fault::active::Faults;
use crate::judge::log::{Log, ReadKind, WriteRecord};
use crate::store::Store;
use crate::store::changes::Changes;
use crate::store::piece::WatchBreak;

/// An in-process Kubernetes API server. Clones share everything.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use fake_kube_apiserver::ApiServer;
/// use serde_json::json;
/// use tower::ServiceExt;
///
/// let server = ApiServer::new();
/// let request = http::Request::post("/api/v1/namespaces/default/configmaps")
///     .header("Authorization", "Bearer alice")
///     .body(json!({ "metadata": { "name": "a" }, "data": { "k": "v" } }).to_string())
///     .unwrap();
/// let response = server.service().oneshot(request).await.unwrap();
/// assert_eq!(response.status(), 201);
/// let object = server.object("/api/v1/namespaces/default/configmaps/a").unwrap();
/// assert_eq!(object["data"]["k"], "v");
/// assert_eq!(server.write_log()[0].user, "alice");
/// # }
/// ```
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) shared: Arc<Shared>,
}

/// Chooses the limits of a server; made by [`ApiServer::builder`].
#[derive(Clone, Debug)]
pub struct ApiServerBuilder {
    event_history: usize,
    watch_buffer: usize,
}

/// Removes its fault when it is dropped; made by [`ApiServer::inject`].
#[must_use = "dropping it removes the fault"]
pub struct FaultGuard {
    shared: Arc<Shared>,
    id: u64,
    hits: Arc<AtomicU64>,
}

/// What all handles of a server share. Neither lock is held across an await, nor both at once.
pub(crate) struct Shared {
    state: Mutex<State>,
    faults: Mutex<Faults>,
}

/// One lock for the objects and the log: the log's order is the order of the effects.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) log: Log,
}

// === impl ApiServer ===

impl ApiServer {
    /// An empty server with the usual limits.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A server with limits of one's own choice.
    #[must_use]
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder { event_history: 1024, watch_buffer: 256 }
    }

    /// Every write that reached the server so far, in the order of arrival.
    #[must_use]
    pub fn write_log(&self) -> Vec<WriteRecord> {
        self.shared.state().log.writes.clone()
    }

    /// How many reads of this kind have reached the server.
    #[must_use]
    pub fn reads(&self, user: &str, verb: &str, resource: &str) -> u64 {
        let state = self.shared.state();
        let same = |it: &ReadKind| it.user == user && it.verb == verb && it.resource == resource;
        state.log.reads.iter().filter(|(kind, _)| same(kind)).map(|(_, count)| count).sum()
    }

    /// Adds a fault, behind those that are there, until the guard is dropped.
    pub fn inject(&self, fault: Fault) -> FaultGuard {
        let (id, hits) = self.shared.faults().add(fault);
        FaultGuard { shared: Arc::clone(&self.shared), id, hits }
    }

    /// Removes all faults. Requests that already hang stay so.
    pub fn clear_faults(&self) {
        self.shared.faults().clear();
    }

    /// Breaks the open watches whose user pleases `matches`, and says how many. New ones are not touched:
    /// for those, [`Fault::break_watch`]. `matches` must not use the server.
    pub fn break_watches(&self, matches: impl Fn(&str) -> bool, how: WatchBreak) -> usize {
        self.shared.state().store.changes.break_watches(matches, how)
    }

    /// How many watches are open.
    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.shared.state().store.changes.watchers()
    }

    /// Forgets the event history, as etcd's compaction does: a new watch from any version before now gets
    /// 410.
    pub fn compact(&self) {
        self.shared.state().store.compact();
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

// === impl ApiServerBuilder ===

impl ApiServerBuilder {
    /// How many changes the server remembers for watches that start from a version (1024).
    #[must_use]
    pub fn event_history(self, changes: usize) -> Self {
        Self { event_history: changes, ..self }
    }

    /// How many events wait for a slow watch before it is closed (256; at least 1).
    #[must_use]
    pub fn watch_buffer(self, events: usize) -> Self {
        Self { watch_buffer: events.clamp(1, 1 << 16), ..self }
    }

    /// The server.
    #[must_use]
    pub fn build(self) -> ApiServer {
        let store = Store::new(Changes::new(self.event_history, self.watch_buffer));
        let state = Mutex::new(State { store, log: Log::default() });
        ApiServer { shared: Arc::new(Shared { state, faults: Mutex::default() }) }
    }
}

// === impl FaultGuard ===

impl FaultGuard {
    /// How many requests the fault has met.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.shared.faults().remove(self.id);
    }
}

impl fmt::Debug for FaultGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultGuard").field("hits", &self.hits).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    /// A panic under the lock is one of a test's own closure, before anything has been changed.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
