//! The objects, their version counter, and the identifiers of new objects.

pub(crate) mod changes;
pub(crate) mod filter;
pub(crate) mod piece;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::object::ids::Ids;
use crate::object::members::set_version;
use crate::object::stored::{Key, Object};
use crate::path::Collection;
use crate::store::changes::{Change, Changes};
use crate::store::filter::Filter;

/// All the server's objects.
#[derive(Debug)]
pub(crate) struct Store {
    objects: BTreeMap<Key, Arc<Object>>,
    version: u64,
    pub(crate) changes: Changes,
    pub(crate) ids: Ids,
}

// === impl Store ===

impl Store {
    pub(crate) fn new(changes: Changes) -> Self {
        // 0 has a special meaning in requests.
        Self { objects: BTreeMap::new(), version: 1, changes, ids: Ids::default() }
    }

    /// The version of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.objects.get(key).cloned()
    }

    /// The objects that the filter covers, by namespace and name.
    pub(crate) fn list(&self, filter: &Filter) -> Vec<(Key, Arc<Object>)> {
        let first = Key {
            collection: filter.collection.clone(),
            namespace: filter.namespace.clone().unwrap_or_default(),
            name: String::new(),
        };
        self.objects
            .range(first..)
            .take_while(|(key, _)| filter.covers(&key.collection, &key.namespace))
            .filter(|(_, object)| filter.selector.matches(&object.value))
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
    }

    /// The last object of the collection or namespace, even if the selector leaves it out.
    pub(crate) fn last(&self, filter: &Filter) -> Option<&Key> {
        self.objects.keys().rev().find(|it| filter.covers(&it.collection, &it.namespace))
    }

    /// The kind of the first object of the collection.
    pub(crate) fn kind_in(&self, collection: &Collection) -> Option<&str> {
        let first = Key { collection: collection.clone(), namespace: String::new(), name: String::new() };
        let (key, object) = self.objects.range(first..).next()?;
        (key.collection == *collection).then(|| object.value["kind"].as_str())?
    }

    /// Writes the object under the next version.
    pub(crate) fn put(&mut self, key: Key, mut value: Value) -> Arc<Object> {
        self.version += 1;
        set_version(&mut value, self.version);
        let object = Arc::new(Object::new(value));
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.tell(key, before, Arc::clone(&object), false);
        object
    }

    /// Removes the object. The returned object has the version of the deletion.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Arc<Object>> {
        let before = self.objects.remove(&key)?;
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
        let Key { collection, namespace, .. } = key;
        let version = self.version;
        self.changes.record(Change { version, collection, namespace, before, object, deleted });
    }
}
