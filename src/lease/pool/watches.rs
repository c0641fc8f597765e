//! The watches that the locks of a pool share, one per namespace.
//!
//! A [`SharedWatch`] is one watch and its task. An [`EventSlot`](crate::lease::news::EventSlot) holds the events that one lock
//! has not read yet. When a watch ends, all its locks learn that. The first lock that asks again begins the next watch.

use super::{
    clients::Clients,
    shared_watch::{Following, SharedWatch},
};
use crate::lease::{
    error::{ErrLock, ErrLockKind},
    lock::LeaseEvent,
    name::LeaseName,
};
use futures_util::Stream;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// The pool believes a refusal when it has lasted for this long. An API server that has just started does not know any Role
/// yet, so it refuses. If the pool believed this, each of a thousand locks would ask this server for a watch of its own.
const BELIEVED_AFTER: Duration = Duration::from_secs(10);
/// Until the pool believes a refusal, all locks together ask again this often.
const ASKED_AGAIN: Duration = Duration::from_secs(1);
/// When the pool believes a refusal, it does not ask for the watch of this namespace for this long. Meanwhile each lock watches
/// its own lease.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// The watches of one pool.
pub(in crate::lease) struct SharedWatches {
    clients: Arc<Clients>,
    namespaces: Mutex<HashMap<String, Namespace>>,
    ids: AtomicU64,
    /// The longest call timeout of the locks that share watches, in milliseconds.
    patience: AtomicU64,
}

#[derive(Default)]
struct Namespace {
    watch: Weak<SharedWatch>,
    refusal: Option<Refusal>,
}

/// The API server refuses the watch.
struct Refusal {
    since: Instant,
    last: Instant,
    error: ErrLock,
    is_believed: bool,
}

/// One lock's place among the locks that share a watch.
pub(in crate::lease) struct Member {
    watches: Arc<SharedWatches>,
    /// The id of the watch that this lock follows. 0 if the lock has learned that this watch is over.
    follows: Arc<AtomicU64>,
}

/// A lock's part of a running watch.
pub(in crate::lease) struct Joined {
    following: Following,
    follows: Arc<AtomicU64>,
}

// === impl SharedWatches ===

impl SharedWatches {
    pub(in crate::lease) fn new(clients: Arc<Clients>) -> Arc<Self> {
        Arc::new(Self {
            clients,
            namespaces: Mutex::default(),
            ids: AtomicU64::new(1),
            patience: AtomicU64::default(),
        })
    }

    /// A place for a lock whose calls may take this long.
    pub(in crate::lease) fn member(self: &Arc<Self>, call_timeout: Duration) -> Member {
        let millis = call_timeout.as_millis().try_into().unwrap_or(u64::MAX);
        self.patience.fetch_max(millis, Ordering::Relaxed);
        Member { watches: self.clone(), follows: Arc::default() }
    }

    /// The watch of this namespace. Begins one if there is none. None if the API server refuses it.
    fn hub(&self, namespace: &str) -> Result<Option<Arc<SharedWatch>>, ErrLock> {
        let mut namespaces = self.namespaces();
        let present = namespaces.entry(namespace.to_owned()).or_default();
        if let Some(hub) = present.watch.upgrade().filter(|hub| !hub.is_over()) {
            return Ok(Some(hub));
        }
        match &present.refusal {
            Some(refusal) if refusal.is_believed && refusal.last.elapsed() < REFUSED_FOR => return Ok(None),
            Some(refusal) if refusal.last.elapsed() < ASKED_AGAIN => return Err(refusal.error.clone()),
            _ => {}
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        // Use the newest client: a watch needs its own connection in any case.
        let patience = Duration::from_millis(self.patience.load(Ordering::Relaxed));
        let hub = Arc::new(SharedWatch::start(id, self.clients.caller(), namespace, patience));
        present.watch = Arc::downgrade(&hub);
        Ok(Some(hub))
    }

    /// Notes that the API server has refused the watch. Returns whether the pool believes the refusal.
    fn refused(&self, namespace: &str, error: &ErrLock) -> bool {
        let now = Instant::now();
        let first = || Refusal { since: now, last: now, error: error.clone(), is_believed: false };
        let (is_believed, was_believed) = {
            let mut namespaces = self.namespaces();
            let refusal =
                namespaces.entry(namespace.to_owned()).or_default().refusal.get_or_insert_with(first);
            let was_believed = refusal.is_believed;
            refusal.last = now;
            refusal.is_believed |= refusal.since.elapsed() >= BELIEVED_AFTER;
            (refusal.is_believed, was_believed)
        };
        if is_believed && !was_believed {
            tracing::warn!(
                namespace,
                error = error.kind().as_str(),
                "the leases cannot be watched together, so each is watched by itself; allow `watch` on all leases of the \
                 namespace: {error}"
            );
        }
        is_believed
    }

    /// Forgets the refusal, because the watch has begun, or has failed in another way.
    fn does_not_refuse(&self, namespace: &str) {
        if let Some(present) = self.namespaces().get_mut(namespace) {
            present.refusal = None;
        }
    }

    fn namespaces(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Member ===

impl Member {
    /// Joins the watch of the namespace, and waits until it has begun. None if this lock should watch its own lease.
    ///
    /// If a lock asks again while its watch still runs, the watch has not shown it all news. `known` is the newest version of
    /// its lease that the answers to its calls have shown. If the watch has shown this version or a newer one, of any lease,
    /// only this lock has a problem, and watches its own lease. Otherwise the watch hangs, and a new one begins for all locks.
    pub(in crate::lease) async fn join(
        &self,
        lease: &LeaseName,
        known: u64,
    ) -> Result<Option<Joined>, ErrLock> {
        let namespace = lease.namespace();
        let follows = self.follows.swap(0, Ordering::AcqRel);
        let Some(mut hub) = self.watches.hub(namespace)? else { return Ok(None) };
        if hub.id() == follows {
            if hub.has_delivered(known) {
                return Ok(None);
            }
            hub.give_up(&ErrLock::new(ErrLockKind::Timeout, "the shared watch is silent"));
            match self.watches.hub(namespace)? {
                Some(next) => hub = next,
                None => return Ok(None),
            }
        }
        let following = hub.follow(lease.name());
        match following.stands().await {
            Err(error) if error.kind() == ErrLockKind::Forbidden => {
                return if self.watches.refused(namespace, &error) { Ok(None) } else { Err(error) };
            }
            other => {
                self.watches.does_not_refuse(namespace);
                other?;
            }
        }
        Ok(Some(Joined { following, follows: self.follows.clone() }))
    }
}

// === impl Joined ===

impl Joined {
    pub(in crate::lease) fn events(self) -> impl Stream<Item = Result<LeaseEvent, ErrLock>> + Send {
        let follows = self.follows;
        follows.store(self.following.watch(), Ordering::Release);
        self.following.events(move || follows.store(0, Ordering::Release))
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::*;
    use crate::{lease::pool::clients::Clients, testing::ApiServer};
    use kube_client::Client;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn refused_watch_is_asked_for_again_after_ten_minutes() {
        let server = ApiServer::new();
        let clients = Clients::of_test(&Client::new(server.service(), "default"));
        let watches = SharedWatches::new(clients);
        let refused = || watches.refused("default", &ErrLock::new(ErrLockKind::Forbidden, "no"));
        assert!(!refused());
        advance(BELIEVED_AFTER).await;
        watches.does_not_refuse("default"); // the API server is away
        assert!(!refused());
        advance(BELIEVED_AFTER.saturating_sub(Duration::from_nanos(1))).await;
        assert!(!refused());
        advance(Duration::from_nanos(1)).await;
        assert!(refused());
        assert!(watches.hub("other").unwrap().is_some(), "only this namespace");
        advance(REFUSED_FOR.saturating_sub(Duration::from_nanos(1))).await;
        assert!(watches.hub("default").unwrap().is_none());
        advance(Duration::from_nanos(1)).await;
        assert!(watches.hub("default").unwrap().is_some());
    }
}
