//! What is due at a gain, in small steps: the noted objects, then the rest of the store.

use super::notes::Notes;
use crate::election::Candidate;
use futures_util::{StreamExt, stream::BoxStream};
use kube_runtime::reflector::{Lookup, ObjectRef, Store};
use std::{collections::HashSet, hash::Hash, mem, sync::Arc, time::Duration, vec};
use tokio::time::{Instant, sleep_until};

/// How many objects one step hands out. Few, so that their writes share the connections that are open, and because a
/// controller does not keep the order of objects that it gets in the same millisecond.
const STEP: u32 = 4;

/// The time from one step to the next: 333 objects a second.
const PAUSE: Duration = Duration::from_millis(12);

pub(super) struct Sweep<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> {
    notes: Arc<Notes<K>>,
    store: Store<K>,
    dyntype: K::DynamicType,
    candidate: Candidate,
    gains: BoxStream<'static, ()>,
    due: Due<K>,
    pace: Pace,
}

/// What is left of the sweep.
enum Due<K: Lookup<DynamicType: Eq + Hash>> {
    Nothing,
    /// The noted objects, and those of them that have been handed out.
    Noted(vec::IntoIter<Arc<ObjectRef<K>>>, HashSet<Arc<ObjectRef<K>>>),
    /// All others.
    Rest(vec::IntoIter<Arc<K>>, HashSet<Arc<ObjectRef<K>>>),
}

struct Pace {
    /// How many objects this step may still hand out.
    left: u32,
    next_step: Instant,
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
        Self { notes, store, dyntype, candidate, gains, due: Due::Nothing, pace: Pace::new() }
    }

    /// The next object. None if the election is over.
    pub(super) async fn next(&mut self) -> Option<ObjectRef<K>> {
        loop {
            tokio::select! {
                biased;
                gain = self.gains.next() => {
                    gain?;
                    self.due = Due::Noted(self.notes.all().into_iter(), HashSet::new());
                    self.pace = Pace::new();
                }
                () = self.pace.wait(), if !matches!(self.due, Due::Nothing) => {
                    // What is left stays noted or in the store, and the next gain has it.
                    if !self.candidate.can_write() {
                        self.due = Due::Nothing;
                    } else if let Some(object) = self.pop() {
                        self.pace.left -= 1;
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
            let told = mem::take(told);
            let any = !told.is_empty();
            self.due = Due::Rest(self.store.state().into_iter(), told);
            if any {
                // The others begin with a step of their own.
                self.pace.left = 0;
                return None;
            }
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

// === impl Pace ===

impl Pace {
    fn new() -> Self {
        Self { left: STEP, next_step: Instant::now() + PAUSE }
    }

    /// Waits until another object may be handed out. Cancel-safe.
    async fn wait(&mut self) {
        if self.left == 0 {
            sleep_until(self.next_step).await;
            *self = Self::new();
        }
    }
}
