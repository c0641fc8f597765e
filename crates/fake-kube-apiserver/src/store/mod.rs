//! The objects, their version counter, and the identifiers of new objects.

pub(crate) mod changes;
pub(crate) mod filter;
pub(crate) mod objects;
pub(crate) mod piece;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::object::ids::Ids;
use crate::object::members::set_version;
use crate::object::stored::{Key, Object};
use crate::store::changes::{Change, Changes};
use crate::store::objects::Objects;

/// All the server's objects.
#[derive(Debug)]
pub(crate) struct Store {
    objects: Objects,
    version: u64,
    pub(crate) changes: Changes,
    pub(crate) ids: Ids,
}

// === impl Store ===

impl Store {
    pub(crate) fn new(changes: Changes) -> Self {
        // 0 has a special meaning in requests.
        Self { objects: Objects::default(), version: 1, changes, ids: Ids::default() }
    }

    /// The version of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.objects.get(key)
    }

    /// The objects now.
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The objects as they were at this version. None if the history no longer tells.
    pub(crate) fn objects_at(&self, version: u64) -> Option<Cow<'_, Objects>> {
        if self.changes.has_forgotten(version) {
            return None;
        }
        let mut objects = Cow::Borrowed(&self.objects);
        for change in self.changes.after(version).rev() {
            objects.to_mut().set(&change.key, change.before.as_ref());
        }
        Some(objects)
    }

    /// Writes the object under the next version.
    pub(crate) fn put(&mut self, key: Key, mut value: Value) -> Arc<Object> {
        self.version += 1;
        set_version(&mut value, self.version);
        let object = Arc::new(Object::new(value));
        let before = self.objects.set(&key, Some(&object));
        self.tell(key, before, Arc::clone(&object), false);
        object
    }

    /// Removes the object. The returned object has the version of the deletion.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Arc<Object>> {
        let before = self.objects.set(&key, None)?;
        self.version += 1;
        let mut value = before.value.clone();
        set_version(&mut value, self.version);
        let object = Arc::new(Object::new(value));
        self.tell(key, Some(before), Arc::clone(&object), true);
        Some(object)
    }

    /// Forgets the event history. A watch from an earlier version then gets 410.
    pub(crate) fn compact(&mut self) {
        self.changes.compact(self.version);
    }

    fn tell(&mut self, key: Key, before: Option<Arc<Object>>, object: Arc<Object>, deleted: bool) {
        self.changes.record(Change { version: self.version, key, before, object, deleted });
    }
}
