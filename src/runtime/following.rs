//! One term's view of a cache.

use super::feed::{Feed, Heard};
use crate::{
    election::Candidate,
    leadership::{LeadershipState, Term},
};
use futures_util::{StreamExt, stream::BoxStream};
use kube_runtime::{
    reflector::{Lookup, ObjectRef},
    watcher::Event,
};
use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};
use tokio::sync::broadcast::{Receiver, error::RecvError};

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
