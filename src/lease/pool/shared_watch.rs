//! One watch of all leases in a namespace. It lasts while a lock follows it.

use super::clients::Caller;
use crate::{
    api,
    lease::{
        error::ErrLock,
        lock::LeaseEvent,
        news::{self, EventSlot},
        record::LeaseRecord,
    },
};
use futures_util::{Stream, StreamExt, stream};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant, time::timeout};
use tokio_util::task::AbortOnDropHandle;

/// A watch and its task. Each follower holds it. The task ends when the last follower drops it.
#[derive(Debug)]
pub(super) struct SharedWatch {
    id: u64,
    asked: Instant,
    /// How long the watch may take to begin.
    patience: Duration,
    board: Arc<Subscribers>,
    task: AbortOnDropHandle<()>,
}

/// Passes news from the task to the followers.
#[derive(Debug)]
struct Subscribers {
    board: Mutex<Board>,
    /// Changes only while the mutex of `board` is locked, so that no follower joins in between.
    phase: watch::Sender<Phase>,
    /// The newest version of any lease that the watch has shown.
    delivered: AtomicU64,
}

#[derive(Debug, Default)]
struct Board {
    slots: HashMap<String, Vec<Arc<EventSlot>>>,
    /// The present leases of the namespace. A follower that joins late begins with them.
    present: HashMap<String, LeaseRecord>,
}

#[derive(Clone, Debug)]
enum Phase {
    Connecting,
    Standing,
    Over(Option<ErrLock>),
}

/// One lock's part of the watch.
#[derive(Debug)]
pub(super) struct Following {
    hub: Arc<SharedWatch>,
    name: String,
    slot: Arc<EventSlot>,
}

/// When the task ends in any way, this is dropped, and tells all followers that the watch is over.
struct Ending(Arc<Subscribers>);

// === impl SharedWatch ===

impl SharedWatch {
    /// Begins to watch the leases of `namespace`, in a task of the current runtime.
    pub(super) fn start(id: u64, caller: Caller, namespace: &str, patience: Duration) -> Self {
        let (phase, _) = watch::channel(Phase::Connecting);
        let board = Arc::new(Subscribers { board: Mutex::default(), phase, delivered: AtomicU64::new(0) });
        let ending = Ending(board.clone());
        let path = news::of_all(namespace);
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let Ending(board) = &ending;
            board.end(board.watch(&caller, &path, patience).await.err().as_ref());
        }));
        Self { id, asked: Instant::now(), patience, board, task }
    }

    /// The id of this watch. No other watch of the pool has the same id.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Whether the watch is over. Ends a watch that has not begun in time: if its runtime is blocked, its own task cannot do
    /// this.
    pub(super) fn is_over(&self) -> bool {
        if self.asked.elapsed() > self.patience && matches!(*self.board.phase.borrow(), Phase::Connecting) {
            self.give_up(&ErrLock::timeout(self.patience));
        }
        matches!(*self.board.phase.borrow(), Phase::Over(_))
    }

    /// Whether the watch has shown a version of any lease that is at least as new as `version`.
    pub(super) fn has_delivered(&self, version: u64) -> bool {
        self.board.delivered.load(Ordering::Acquire) >= version
    }

    /// Ends the watch for all followers.
    pub(super) fn give_up(&self, error: &ErrLock) {
        self.board.end(Some(error));
        self.task.abort();
    }

    /// Follows the lease `name` from now on.
    pub(super) fn follow(self: &Arc<Self>, name: &str) -> Following {
        let slot = Arc::new(EventSlot::default());
        let mut board = self.board.lock();
        if let Some(present) = board.present.get(name) {
            slot.put(LeaseEvent::Seen(present.clone()));
        }
        if let Phase::Over(error) = &*self.board.phase.borrow() {
            slot.end(error.clone());
        }
        board.slots.entry(name.to_owned()).or_default().push(slot.clone());
        Following { hub: self.clone(), name: name.to_owned(), slot }
    }
}

// === impl Subscribers ===

impl Subscribers {
    async fn watch(&self, caller: &Caller, path: &str, patience: Duration) -> Result<(), ErrLock> {
        let asked = timeout(patience, caller.watch(path)).await;
        let mut lines = api::lines(asked.map_err(|_| ErrLock::timeout(patience))??);
        {
            let _board = self.lock();
            self.phase.send_replace(Phase::Standing);
        }
        while let Some(line) = lines.next().await {
            self.tell(&line?)?;
        }
        Ok(())
    }

    fn tell(&self, line: &[u8]) -> Result<(), ErrLock> {
        let Some(news) = news::read(line)? else { return Ok(()) };
        let mut board = self.lock();
        for slot in board.slots.get(&news.name).into_iter().flatten() {
            match &news.event {
                Ok(event) => slot.put(event.clone()),
                // If the object is not a lease, only the followers of this name get the error.
                Err(error) => slot.end(Some(error.clone())),
            }
        }
        match news.event {
            Ok(LeaseEvent::Seen(record)) => drop(board.present.insert(news.name, record)),
            Ok(LeaseEvent::Deleted(_)) | Err(_) => drop(board.present.remove(&news.name)),
        }
        self.delivered.fetch_max(news.version.unwrap_or(0), Ordering::AcqRel);
        Ok(())
    }

    /// Only the first call counts.
    fn end(&self, error: Option<&ErrLock>) {
        let board = self.lock();
        let first = self.phase.send_if_modified(|phase| {
            let first = !matches!(phase, Phase::Over(_));
            if first {
                *phase = Phase::Over(error.cloned());
            }
            first
        });
        if first {
            board.slots.values().flatten().for_each(|slot| slot.end(error.cloned()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

// === impl Following ===

impl Following {
    /// The id of the watch.
    pub(super) fn watch(&self) -> u64 {
        self.hub.id
    }

    /// Waits until the watch has begun. Cancel-safe.
    pub(super) async fn stands(&self) -> Result<(), ErrLock> {
        let mut phase = self.hub.board.phase.subscribe();
        // `self` keeps the sender alive, so this waits for as long as necessary.
        let phase = phase.wait_for(|phase| !matches!(phase, Phase::Connecting)).await;
        match phase.as_deref() {
            Ok(Phase::Over(Some(error))) => Err(error.clone()),
            Ok(Phase::Over(None)) | Err(_) => Err(ErrLock::cut_off("the shared watch ended at once")),
            Ok(Phase::Connecting | Phase::Standing) => Ok(()),
        }
    }

    /// Yields the events of the lease. Calls `ended` when the stream has ended, but not when it is dropped before its end.
    pub(super) fn events(
        self,
        ended: impl FnOnce() + Send,
    ) -> impl Stream<Item = Result<LeaseEvent, ErrLock>> + Send {
        stream::unfold(Some((self, ended)), |state| async move {
            let (following, ended) = state?;
            match following.slot.next().await {
                Some(Ok(event)) => Some((Ok(event), Some((following, ended)))),
                last => {
                    ended();
                    last.map(|error| (error, None))
                }
            }
        })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let slots = &mut self.hub.board.lock().slots;
        if let Some(of_lease) = slots.get_mut(&self.name) {
            of_lease.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
            if of_lease.is_empty() {
                slots.remove(&self.name);
            }
        }
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::*;
    use crate::{lease::pool::clients::Clients, testing::ApiServer};
    use kube_client::Client;
    use tokio::runtime::Runtime;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn followers_that_leave_are_removed() {
        let server = ApiServer::new();
        let clients = Clients::of_test(&Client::new(server.service(), "default"));
        let hub = Arc::new(SharedWatch::start(1, clients.caller(), "default", PATIENCE));
        let (a, b, other) = (hub.follow("x"), hub.follow("x"), hub.follow("y"));
        a.stands().await.unwrap();
        drop(a);
        assert_eq!(hub.board.lock().slots.get("x").map(Vec::len), Some(1));
        drop((b, other));
        assert!(hub.board.lock().slots.is_empty());
    }

    /// The runtime that began the watch may end before other runtimes of the process.
    #[test]
    fn followers_learn_that_the_watch_lost_its_runtime() {
        let server = ApiServer::new();
        let first = Runtime::new().unwrap();
        let hub = first.block_on(async {
            let clients = Clients::of_test(&Client::new(server.service(), "default"));
            Arc::new(SharedWatch::start(1, clients.caller(), "default", PATIENCE))
        });
        let follower = hub.follow("x");
        let second = Runtime::new().unwrap();
        second.block_on(follower.stands()).unwrap();
        drop(first);
        let next = async { timeout(Duration::from_secs(10), follower.slot.next()).await };
        assert!(matches!(second.block_on(next), Ok(None)), "the watch is over, without an error");
        assert!(hub.is_over());
    }
}
