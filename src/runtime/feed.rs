//! Connects one watch with its followers: a cache, and a bounded channel.
//!
//! One lock covers two steps: the cache changes, and the channel receives the change. A follower subscribes and reads
//! the cache under the same lock. So it finds each change either in the cache or in the channel, and never in both.

use kube_runtime::{
    reflector::{Lookup, Store, store::Writer},
    watcher::Event,
};
use std::{
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::broadcast::{self, Receiver, Sender};

/// How many changes may wait for a slow follower. If there are more, the follower gets the difference instead.
const WAITING: usize = 256;

/// What followers receive.
#[derive(Clone, Debug)]
pub(super) enum Heard<K> {
    Apply(Arc<K>),
    Delete(Arc<K>),
    /// The watch has listed all objects again, so anything may have changed.
    Listed,
}

/// The end that followers hold.
pub(super) struct Feed<K: Lookup<DynamicType: Eq + Hash> + 'static> {
    pub(super) store: Store<K>,
    pub(super) dyntype: K::DynamicType,
    open: Mutex<Open<K>>,
}

/// The watch's end of the feed. Dropping it closes the feed.
pub(super) struct Source<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> {
    writer: Writer<K>,
    feed: Arc<Feed<K>>,
}

/// Where a follower starts: the channel for later changes and, after the first list, all objects.
pub(super) type Start<K> = (Receiver<Heard<K>>, Option<Vec<Arc<K>>>);

struct Open<K> {
    followers: Option<Sender<Heard<K>>>,
    listed: bool,
}

pub(super) fn feed<K>(dyntype: K::DynamicType) -> (Source<K>, Arc<Feed<K>>)
where
    K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static,
{
    let writer = Writer::new(dyntype.clone());
    let open = Mutex::new(Open { followers: Some(broadcast::channel(WAITING).0), listed: false });
    let feed = Arc::new(Feed { store: writer.as_reader(), dyntype, open });
    (Source { writer, feed: feed.clone() }, feed)
}

// === impl Feed ===

impl<K: Lookup<DynamicType: Eq + Hash> + 'static> Feed<K> {
    /// Under the lock, only an object's own `clone` can panic. Nothing has changed at that point.
    fn open(&self) -> MutexGuard<'_, Open<K>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Feed<K> {
    /// Starts a follower. None if the watch is over.
    pub(super) fn start(&self) -> Option<Start<K>> {
        let open = self.open();
        let heard = open.followers.as_ref()?.subscribe();
        Some((heard, open.listed.then(|| self.store.state())))
    }
}

// === impl Source ===

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Source<K> {
    pub(super) fn take(&mut self, event: &Event<K>) {
        let mut open = self.feed.open();
        self.writer.apply_watcher_event(event);
        open.listed |= matches!(event, Event::InitDone);
        // A replica that does not lead has no followers.
        let Some(followers) = open.followers.as_ref().filter(|it| it.receiver_count() > 0) else {
            return;
        };
        let heard = match event {
            // The cache needs its own copy.
            Event::Apply(object) => {
                self.feed.store.get(&object.to_object_ref(self.feed.dyntype.clone())).map(Heard::Apply)
            }
            Event::Delete(object) => Some(Heard::Delete(Arc::new(object.clone()))),
            Event::InitDone => Some(Heard::Listed),
            Event::Init | Event::InitApply(_) => None,
        };
        // The last follower may be gone by now.
        let _ = heard.map(|heard| followers.send(heard));
    }

    /// Closes the feed: no more changes come.
    pub(super) fn close(&mut self) {
        self.feed.open().followers = None;
    }
}

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Drop for Source<K> {
    fn drop(&mut self) {
        self.close();
    }
}
