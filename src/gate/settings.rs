//! The settings of a gate, shared by the layer and the service.

use super::observer::WriteObserver;
use crate::{leadership::Leadership, policy::Policy};
use std::sync::Arc;

/// The settings that all gates of one layer share. Clones are cheap.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) leadership: Leadership,
    pub(super) policy: Arc<Policy>,
    pub(super) observer: Option<Arc<dyn WriteObserver>>,
}

impl Settings {
    pub(super) fn new(leadership: Leadership) -> Self {
        Self { leadership, policy: Arc::default(), observer: None }
    }

    pub(super) fn with_policy(self, policy: Policy) -> Self {
        if let Err(invalid) = policy.validate() {
            tracing::error!("{invalid}");
        }
        Self { policy: Arc::new(policy), ..self }
    }

    pub(super) fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }
}
