//! What the layer, the service and its future share.

use super::denial::Denial;
use crate::gate::WriteObserver;
use http::{Method, Uri};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) denial: Denial,
    pub(super) observer: Option<Arc<dyn WriteObserver>>,
}

/// What a write asked, kept for an error.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) upgrade: bool,
    pub(super) settings: Settings,
}
