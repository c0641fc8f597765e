//! What is due at a gain, one by one: the noted objects, then the rest of the store.

use super::notes::Notes;
use crate::election::Candidate;
use futures_util::{StreamExt, stream::BoxStream};
use kube_runtime::reflector::{Lookup, ObjectRef, Store};
use std::{collections::HashSet, hash::Hash, mem, sync::Arc, time::Duration, vec};
use tokio::time::{Instant, sleep_until};

/// The time from one object to the next: 333 objects a second. A controller keeps the order of objects that come at
/// different milliseconds, and their writes share a few connections.
const PAUSE: Duration = Duration::from_millis(3);

pub(super) struct Sweep<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> {
    notes: Arc<Notes<K>>,
    store: Store<K>,
    dyntype: K::DynamicType,
    candidate: Candidate,
    gains: BoxStream<'static, ()>,
    due: Due<K>,
    /// When the next object may be handed out. None: at once.
    next: Option<Instant>,
}

/// What is left of the sweep.
enum Due<K: Lookup<DynamicType: Eq + Hash>> {
    Nothing,
    /// The noted objects, and those of them that have been handed out.
    Noted(vec::IntoIter<Arc<ObjectRef<K>>>, HashSet<Arc<ObjectRef<K>>>),
    /// All others.
    Rest(vec::IntoIter<Arc<K>>, HashSet<Arc<ObjectRef<K>>>),
}

// === impl Sweep ===

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Sweep<K> {
    pub(super) fn new(
        notes: Arc<Notes<K>>,
        store: Store<K>,
        dyntype: K::DynamicType,
        candidate: Candidate,
    ) -> Self {
        let gains = candidate.gains().boxed();
        Self { notes, store, dyntype, candidate, gains, due: Due::Nothing, next: None }
    }

    /// The next object. None if the election is over.
    pub(super) async fn next(&mut self) -> Option<ObjectRef<K>> {
        loop {
            tokio::select! {
                biased;
                gain = self.gains.next() => {
                    gain?;
                    self.due = Due::Noted(self.notes.all().into_iter(), HashSet::new());
                    self.next = None;
                }
                () = wait(self.next), if !matches!(self.due, Due::Nothing) => {
                    // What is left stays noted or in the store, and the next gain has it.
                    if !self.candidate.can_write() {
                        self.due = Due::Nothing;
                    } else if let Some(object) = self.pop() {
                        self.next = Some(Instant::now() + PAUSE);
                        return Some(object);
                    }
                }
            }
        }
    }

    /// The next object of this term. An object that is not in the store is gone: if it comes back, the watch says so.
    fn pop(&mut self) -> Option<ObjectRef<K>> {
        if let Due::Noted(noted, told) = &mut self.due {
            for object in noted {
                if self.store.get(&object).is_some() {
                    told.insert(object.clone());
                    return Some(ObjectRef::clone(&object));
                }
                self.notes.forget(&object);
            }
            // Only now: what has changed meanwhile came by the watch.
            self.due = Due::Rest(self.store.state().into_iter(), mem::take(told));
        }
        if let Due::Rest(rest, told) = &mut self.due {
            for object in rest {
                let object = object.to_object_ref(self.dyntype.clone());
                if !told.contains(&object) && self.store.get(&object).is_some() {
                    return Some(object);
                }
            }
            self.due = Due::Nothing;
        }
        None
    }
}

async fn wait(until: Option<Instant>) {
    if let Some(until) = until {
        sleep_until(until).await;
    }
}
