//! The layer.

use super::{observer::WriteObserver, service::WriteGate, settings::Settings};
use crate::{leadership::Leadership, policy::Policy};
use std::sync::Arc;
use tower_layer::Layer;

/// Puts a [`WriteGate`] in front of a service.
#[derive(Clone, Debug)]
pub struct WriteGateLayer {
    settings: Settings,
}

impl WriteGateLayer {
    /// Makes a layer whose gates let only the leader write, with the strict policy.
    #[must_use]
    pub fn new(leadership: Leadership) -> Self {
        Self { settings: Settings::new(leadership) }
    }

    /// Exempts what `policy` permits, in place of any earlier policy. An invalid rule permits nothing, and the gate logs it.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { settings: self.settings.with_policy(policy) }
    }

    /// Tells `observer` the outcome of each write, in place of any earlier observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { settings: self.settings.with_observer(observer) }
    }
}

impl<S> Layer<S> for WriteGateLayer {
    type Service = WriteGate<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WriteGate::with(inner, self.settings.clone())
    }
}
