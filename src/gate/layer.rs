//! The layer.

use super::{WriteGate, WriteObserver};
use crate::{leadership::Leadership, policy::Policy};
use std::sync::Arc;
use tower_layer::Layer;

/// Puts a [`WriteGate`] in front of a service.
#[derive(Clone, Debug)]
pub struct WriteGateLayer {
    leadership: Leadership,
    policy: Arc<Policy>,
    observer: Option<Arc<dyn WriteObserver>>,
}

impl WriteGateLayer {
    /// A gate that only leaders write through, with the strict policy.
    #[must_use]
    pub fn new(leadership: Leadership) -> Self {
        Self { leadership, policy: Arc::default(), observer: None }
    }

    /// Exempts what `policy` allows, in place of any earlier policy. An invalid rule permits nothing, and is logged.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        if let Err(invalid) = policy.validate() {
            tracing::error!("{invalid}");
        }
        Self { policy: Arc::new(policy), ..self }
    }

    /// Tells `observer` what becomes of writes, in place of any earlier observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }
}

impl<S> Layer<S> for WriteGateLayer {
    type Service = WriteGate<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WriteGate::new(inner, self.leadership.clone(), self.policy.clone(), self.observer.clone())
    }
}
