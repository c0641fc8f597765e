//! A stored object, and its key.

use bytes::Bytes;
use serde_json::Value;

use crate::object::members::text;
use crate::path::Collection;

/// The key of an object in the store. The namespace of a cluster-wide object is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) collection: Collection,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An object at one version, serialized once for all readers.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) value: Value,
    pub(crate) bytes: Bytes,
}

// === impl Object ===

impl Object {
    pub(crate) fn new(value: Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        Self { value, bytes }
    }

    pub(crate) fn uid(&self) -> &str {
        text(&self.value, "uid")
    }

    pub(crate) fn version(&self) -> &str {
        text(&self.value, "resourceVersion")
    }
}
