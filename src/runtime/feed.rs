//! What is between the one who watches and those who follow: the cache, and a bounded channel.
//!
//! The cache changes and the channel is told under one lock, under which a follower subscribes and looks at the cache too:
//! each change is in what it sees or comes after it, never both, never neither.

use kube_runtime::{
    reflector::{Lookup, Store, store::Writer},
    watcher::Event,
};
use std::{
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Changes that wait for a slow follower; past them it is told of the difference instead.
const WAITING: usize = 256;

/// What followers hear.
#[derive(Clone, Debug)]
pub(super) enum Heard<K> {
    Apply(Arc<K>),
    Delete(Arc<K>),
    /// The cache holds what a list has shown: anything may have changed.
    Listed,
}

/// The end that followers hold.
pub(super) struct Feed<K: Lookup<DynamicType: Eq + Hash> + 'static> {
    pub(super) store: Store<K>,
    pub(super) dyntype: K::DynamicType,
    open: Mutex<Open<K>>,
}

/// The end that the watch goes into. Dropping it closes the feed.
pub(super) struct Source<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> {
    writer: Writer<K>,
    feed: Arc<Feed<K>>,
}

/// What a follower goes on from: where it hears the rest, and all objects, if there has been a list.
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
    /// Only an object's own clone can panic under the lock, and then nothing has been changed yet.
    fn open(&self) -> MutexGuard<'_, Open<K>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Feed<K> {
    /// None once the watch is over.
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
            // The cache's own copy.
            Event::Apply(object) => {
                self.feed.store.get(&object.to_object_ref(self.feed.dyntype.clone())).map(Heard::Apply)
            }
            Event::Delete(object) => Some(Heard::Delete(Arc::new(object.clone()))),
            Event::InitDone => Some(Heard::Listed),
            Event::Init | Event::InitApply(_) => None,
        };
        // The last follower may have gone meanwhile.
        let _ = heard.map(|heard| followers.send(heard));
    }

    /// Nothing comes any more.
    pub(super) fn close(&mut self) {
        self.feed.open().followers = None;
    }
}

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Drop for Source<K> {
    fn drop(&mut self) {
        self.close();
    }
}
