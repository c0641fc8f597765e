//! Which objects a list or watch covers.

use crate::object::stored::Key;
use crate::path::Collection;
use crate::select::selector::Selector;

/// The objects that a list or watch covers.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) collection: Collection,
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
}

// === impl Filter ===

impl Filter {
    pub(crate) fn covers(&self, key: &Key) -> bool {
        self.collection == key.collection && self.namespace.as_ref().is_none_or(|it| *it == key.namespace)
    }
}
