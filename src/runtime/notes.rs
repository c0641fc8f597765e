//! Which objects a reconciler skipped, in bounded memory.

use kube_runtime::reflector::{Lookup, ObjectRef};
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many objects are noted at most. If there are more, the oldest note is forgotten, and its object comes with the rest
/// of the store.
pub(super) const MOST: usize = 1024;

pub(super) struct Notes<K: Lookup<DynamicType: Eq + Hash> + 'static>(Mutex<Open<K>>);

struct Open<K: Lookup<DynamicType: Eq + Hash> + 'static> {
    /// Each noted object, with the number of its note. A later note has a higher number.
    numbers: HashMap<Arc<ObjectRef<K>>, u64>,
    objects: BTreeMap<u64, Arc<ObjectRef<K>>>,
    last: u64,
}

// === impl Notes ===

impl<K: Lookup<DynamicType: Eq + Hash> + 'static> Notes<K> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Open { numbers: HashMap::new(), objects: BTreeMap::new(), last: 0 }))
    }

    /// The gate refused or cut off a write for this object.
    pub(super) fn note(&self, object: ObjectRef<K>) {
        let mut open = self.open();
        open.forget(&object);
        if open.objects.len() == MOST
            && let Some((_, oldest)) = open.objects.pop_first()
        {
            open.numbers.remove(&oldest);
        }
        open.last += 1;
        let (number, object) = (open.last, Arc::new(object));
        open.numbers.insert(object.clone(), number);
        open.objects.insert(number, object);
    }

    /// The object needs no write, or is gone.
    pub(super) fn forget(&self, object: &ObjectRef<K>) {
        self.open().forget(object);
    }

    /// All noted objects, the last one first. They stay noted.
    pub(super) fn all(&self) -> Vec<Arc<ObjectRef<K>>> {
        self.open().objects.values().rev().cloned().collect()
    }

    /// Under the lock, only the hash and the comparison of a user's type can panic.
    fn open(&self) -> MutexGuard<'_, Open<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Open ===

impl<K: Lookup<DynamicType: Eq + Hash> + 'static> Open<K> {
    fn forget(&mut self, object: &ObjectRef<K>) {
        if let Some(number) = self.numbers.remove(object) {
            self.objects.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(name: &str) -> ObjectRef<ConfigMap> {
        ObjectRef::new(name)
    }

    fn names(notes: &Notes<ConfigMap>) -> Vec<String> {
        notes.all().iter().map(|it| it.name.clone()).collect()
    }

    #[test]
    fn last_note_comes_first_and_each_object_once() {
        let notes = Notes::new();
        for name in ["a", "b", "c", "a"] {
            notes.note(object(name));
        }
        assert_eq!(names(&notes), ["a", "c", "b"]);
        notes.forget(&object("c"));
        assert_eq!(names(&notes), ["a", "b"], "they stay until they are forgotten");
    }

    #[test]
    fn oldest_note_makes_room_for_the_newest() {
        let notes = Notes::new();
        for number in 0..=MOST {
            notes.note(object(&number.to_string()));
        }
        let names = names(&notes);
        assert_eq!(names.len(), MOST);
        assert_eq!((names[0].as_str(), names[MOST - 1].as_str()), (MOST.to_string().as_str(), "1"));
        assert_eq!(notes.open().numbers.len(), MOST, "both halves are bounded");
    }
}
