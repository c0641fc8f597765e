//! The server itself: its state, its faults and its limits.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault::Fault;
use crate::fault::active::Faults;
use crate::judge::log::{Log, ReadKind, WriteRecord};
use crate::store::Store;
use crate::store::changes::Changes;
use crate::store::piece::WatchBreak;

/// A fake Kubernetes API server. Clones share all state.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> kube::Result<()> {
/// use fake_kube_apiserver::ApiServer;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Client};
/// use serde_json::json;
///
/// let server = ApiServer::new();
/// let path = "/api/v1/namespaces/default/configmaps/a";
/// server.put("bob", path, json!({ "data": { "k": "v" } })).unwrap();
///
/// let maps: Api<ConfigMap> = Api::default_namespaced(Client::new(server.service(), "default"));
/// assert_eq!(maps.get("a").await?.data.unwrap()["k"], "v");
/// maps.delete("a", &Default::default()).await?;
///
/// assert!(server.object(path).is_none());
/// assert_eq!(server.write_log()[1].user, "anonymous");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) shared: Arc<Shared>,
}

/// Sets the limits of a server. Made by [`ApiServer::builder`].
#[derive(Clone, Debug)]
pub struct ApiServerBuilder {
    event_history: usize,
    watch_buffer: usize,
}

/// Keeps a fault in force until it is dropped. Made by [`ApiServer::inject`].
#[must_use = "dropping it removes the fault"]
pub struct FaultGuard {
    shared: Arc<Shared>,
    id: u64,
    hits: Arc<AtomicU64>,
}

/// The state that all handles of a server share. No code holds a lock across an await, or both locks at once.
pub(crate) struct Shared {
    state: Mutex<State>,
    faults: Mutex<Faults>,
}

/// The objects and the log are under one lock, so the log has the order of the effects.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) log: Log,
}

// === impl ApiServer ===

impl ApiServer {
    /// Creates an empty server with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts to build a server with other limits.
    #[must_use]
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder { event_history: 1024, watch_buffer: 256 }
    }

    /// Returns every write that has reached the server, in the order of arrival.
    #[must_use]
    pub fn write_log(&self) -> Vec<WriteRecord> {
        self.shared.state().log.writes.clone()
    }

    /// Returns what [`write_log`](Self::write_log) returns, and empties the log: for a run of hours.
    ///
    /// The outcome of a write that has not ended by now is not recorded.
    #[must_use]
    pub fn take_write_log(&self) -> Vec<WriteRecord> {
        self.shared.state().log.take()
    }

    /// Counts the reads that have reached the server from this user, with this verb, on this resource.
    #[must_use]
    pub fn reads(&self, user: &str, verb: &str, resource: &str) -> u64 {
        let state = self.shared.state();
        let same = |it: &ReadKind| it.user == user && it.verb == verb && it.resource == resource;
        state.log.reads.iter().filter(|(kind, _)| same(kind)).map(|(_, count)| count).sum()
    }

    /// Adds a fault after the existing ones. It stays in force until the guard is dropped.
    pub fn inject(&self, fault: Fault) -> FaultGuard {
        let (id, hits) = self.shared.faults().add(fault);
        FaultGuard { shared: Arc::clone(&self.shared), id, hits }
    }

    /// Removes all faults. Requests that already hang go on hanging.
    pub fn clear_faults(&self) {
        self.shared.faults().clear();
    }

    /// Breaks the open watches of the users for which `matches` is true. Returns how many.
    ///
    /// Later watches are not affected: use [`Fault::break_watch`] for them. `matches` must not use the server.
    pub fn break_watches(&self, matches: impl Fn(&str) -> bool, how: WatchBreak) -> usize {
        self.shared.state().store.changes.break_watches(matches, how)
    }

    /// Counts the open watches.
    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.shared.state().store.changes.watchers()
    }

    /// Forgets the event history, as etcd's compaction does. The server then answers a new watch from an older
    /// version with 410.
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
    /// Sets how many changes the server keeps for watches that start from a version. Default: 1024.
    #[must_use]
    pub fn event_history(self, changes: usize) -> Self {
        Self { event_history: changes, ..self }
    }

    /// Sets how many events may wait for a slow watch before the server closes it. Default: 256; at least 1.
    #[must_use]
    pub fn watch_buffer(self, events: usize) -> Self {
        Self { watch_buffer: events.clamp(1, 1 << 16), ..self }
    }

    /// Builds the server.
    #[must_use]
    pub fn build(self) -> ApiServer {
        let store = Store::new(Changes::new(self.event_history, self.watch_buffer));
        let state = Mutex::new(State { store, log: Log::default() });
        ApiServer { shared: Arc::new(Shared { state, faults: Mutex::default() }) }
    }
}

// === impl FaultGuard ===

impl FaultGuard {
    /// Counts the requests that the fault has applied to.
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
    /// A panic under the lock comes from a test's closure, before the server has changed anything.
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
