//! Field and label selectors.

mod label;
pub(crate) mod selector;
