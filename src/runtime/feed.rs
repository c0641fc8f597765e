//! Connects one watch with its followers, by a cache and a bounded channel, and gives each follower its term's view.
//!
//! One lock covers two steps: the cache changes, and the channel receives the change. A follower subscribes and reads
//! the cache under the same lock. So it finds each change either in the cache or in the channel, and never in both.

use crate::{
    election::Candidate,
    leadership::{LeadershipState, Term},
};
use futures_util::{StreamExt, stream::BoxStream};
use kube_runtime::{
    reflector::{Lookup, ObjectRef, Store, store::Writer},
    watcher::Event,
};
use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

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
        let Some(followers) = open.followers.as_ref().filter(|followers| followers.receiver_count() > 0)
        else {
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

// === impl Following ===

type Objects<K> = HashMap<ObjectRef<K>, Arc<K>>;

/// Yields all objects, then each change, while the term lasts.
pub(super) struct Following<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> {
    feed: Arc<Feed<K>>,
    candidate: Candidate,
    term: Term,
    /// Wakes the stream when the term is lost.
    changes: BoxStream<'static, LeadershipState>,
    /// None until the first look at the cache.
    heard: Option<Receiver<Heard<K>>>,
    /// The objects that were yielded, or are about to be. None until the first list.
    told: Option<Objects<K>>,
    due: VecDeque<Event<Arc<K>>>,
}

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Following<K> {
    pub(super) fn new(feed: Arc<Feed<K>>, candidate: Candidate, term: Term) -> Self {
        let changes = candidate.changes().boxed();
        Self { feed, candidate, term, changes, heard: None, told: None, due: VecDeque::new() }
    }

    /// The next event. None if the term or the watch is over.
    pub(super) async fn next(&mut self) -> Option<Event<Arc<K>>> {
        // Check again before each event (rule S1).
        while self.leads() {
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            let Some(heard) = &mut self.heard else {
                self.catch_up()?;
                continue;
            };
            tokio::select! {
                biased;
                Some(_) = self.changes.next() => {}
                heard = heard.recv() => match heard {
                    Ok(Heard::Apply(object)) => self.apply(object),
                    Ok(Heard::Delete(object)) => self.delete(object),
                    Ok(Heard::Listed) | Err(RecvError::Lagged(_)) => self.catch_up()?,
                    Err(RecvError::Closed) => return None,
                },
            }
        }
        None
    }

    fn leads(&self) -> bool {
        self.candidate.can_write() && self.candidate.term().as_ref() == Some(&self.term)
    }

    fn apply(&mut self, object: Arc<K>) {
        let key = self.key(&object);
        // Before the first list, no object has been yielded.
        if let Some(told) = &mut self.told {
            told.insert(key, object.clone());
            self.due.push_back(Event::Apply(object));
        }
    }

    fn delete(&mut self, object: Arc<K>) {
        let key = self.key(&object);
        if self.told.as_mut().is_some_and(|told| told.remove(&key).is_some()) {
            self.due.push_back(Event::Delete(object));
        }
    }

    /// Continues from the present cache, and yields the difference. None if the watch is over.
    fn catch_up(&mut self) -> Option<()> {
        let (heard, objects) = self.feed.start()?;
        self.heard = Some(heard);
        let Some(objects) = objects else {
            return Some(());
        };
        let now: Objects<K> = objects.into_iter().map(|object| (self.key(&object), object)).collect();
        if let Some(told) = &self.told {
            self.due.extend(difference(told, &now));
        } else {
            self.due.push_back(Event::Init);
            self.due.extend(now.values().cloned().map(Event::InitApply));
            self.due.push_back(Event::InitDone);
        }
        self.told = Some(now);
        Some(())
    }

    fn key(&self, object: &K) -> ObjectRef<K> {
        object.to_object_ref(self.feed.dyntype.clone())
    }
}

/// The events that turn `old` into `new`, with deletions first.
fn difference<K: Lookup<DynamicType: Eq + Hash>>(
    old: &Objects<K>,
    new: &Objects<K>,
) -> impl Iterator<Item = Event<Arc<K>>> {
    // Two objects with the same name may be different objects.
    let is_same = |a: &K, b: &K| a.uid() == b.uid();
    // Versions are only compared for equality. Objects without a version count as changed.
    let is_unchanged = move |a: &K, b: &K| {
        is_same(a, b) && a.resource_version().is_some() && a.resource_version() == b.resource_version()
    };
    let gone = old.iter().filter(move |(key, was)| new.get(*key).is_none_or(|is| !is_same(was, is)));
    let touched = new.iter().filter(move |(key, is)| old.get(*key).is_none_or(|was| !is_unchanged(was, is)));
    let gone = gone.map(|(_, was)| Event::Delete(was.clone()));
    gone.chain(touched.map(|(_, is)| Event::Apply(is.clone())))
}
