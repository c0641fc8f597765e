//! All objects at one version.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::stored::{Key, Object};
use crate::path::Collection;
use crate::store::filter::Filter;

#[derive(Clone, Debug, Default)]
pub(crate) struct Objects(BTreeMap<Key, Arc<Object>>);

// === impl Objects ===

impl Objects {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.0.get(key).cloned()
    }

    /// The objects that the filter covers, by namespace and name.
    pub(crate) fn list(&self, filter: &Filter) -> Vec<(Key, Arc<Object>)> {
        let first = Key {
            collection: filter.collection.clone(),
            namespace: filter.namespace.clone().unwrap_or_default(),
            name: String::new(),
        };
        self.0
            .range(first..)
            .take_while(|(key, _)| filter.covers(key))
            .filter(|(_, object)| filter.selector.matches(&object.value))
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
    }

    /// The last object of the collection or namespace, even if the selector leaves it out.
    pub(crate) fn last(&self, filter: &Filter) -> Option<&Key> {
        self.0.keys().rev().find(|it| filter.covers(it))
    }

    /// The kind of the first object of the collection.
    pub(crate) fn kind_in(&self, collection: &Collection) -> Option<&str> {
        let first = Key { collection: collection.clone(), namespace: String::new(), name: String::new() };
        let (key, object) = self.0.range(first..).next()?;
        (key.collection == *collection).then(|| object.value["kind"].as_str())?
    }

    /// Stores the object, or removes what has this key. Returns what was stored before.
    pub(crate) fn set(&mut self, key: &Key, object: Option<&Arc<Object>>) -> Option<Arc<Object>> {
        match object {
            Some(object) => self.0.insert(key.clone(), Arc::clone(object)),
            None => self.0.remove(key),
        }
    }
}
