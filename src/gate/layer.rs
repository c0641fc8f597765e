//! The tower layer.

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
    /// Makes a layer with the strict policy: its gates let only the leader write.
    #[must_use]
    pub fn new(leadership: Leadership) -> Self {
        Self { settings: Settings::new(leadership) }
    }

    /// Exempts the requests that `policy` permits. It replaces any earlier policy. An invalid rule permits nothing,
    /// and the gate logs it.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { settings: self.settings.with_policy(policy) }
    }

    /// Reports the outcome of each write to `observer`. It replaces any earlier observer.
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
