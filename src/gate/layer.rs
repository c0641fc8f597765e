//! The tower layer.

use super::{
    classifier::{ByLabel, Kubernetes},
    observer::WriteObserver,
    service::WriteGate,
    settings::Settings,
};
use crate::{leadership::Leadership, policy::Policy};
use std::sync::Arc;
use tower_layer::Layer;

/// Puts a [`WriteGate`] in front of a service. `C` says which of its requests are writes.
#[derive(Clone, Debug)]
pub struct WriteGateLayer<C = Kubernetes> {
    settings: Settings,
    classifier: C,
}

impl WriteGateLayer {
    /// Makes a layer for Kubernetes clients, with the strict policy: its gates let only the leader write.
    #[must_use]
    pub fn new(leadership: Leadership) -> Self {
        Self { settings: Settings::new(leadership, None), classifier: Kubernetes::default() }
    }

    /// Exempts the requests that `policy` permits. It replaces any earlier policy. An invalid rule permits nothing,
    /// and the gate logs it.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { classifier: Kubernetes::new(policy), ..self }
    }
}

impl<F> WriteGateLayer<ByLabel<F>> {
    /// Makes a layer for a service of any request type. `label` returns the label of a write, and None for a request
    /// that passes on every replica. The label names the write in errors, logs and metrics. The
    /// [module](super#a-service-that-is-not-kubernetes) has an example.
    #[must_use]
    pub fn by_label<R>(leadership: Leadership, label: F) -> Self
    where
        F: Fn(&R) -> Option<&'static str>,
    {
        Self { settings: Settings::new(leadership, None), classifier: ByLabel { label } }
    }
}

impl<C> WriteGateLayer<C> {
    /// Reports the outcome of each write to `observer`. It replaces any earlier observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { settings: self.settings.with_observer(observer), ..self }
    }
}

impl<S, C: Clone> Layer<S> for WriteGateLayer<C> {
    type Service = WriteGate<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        WriteGate::with(inner, self.settings.clone(), self.classifier.clone())
    }
}
