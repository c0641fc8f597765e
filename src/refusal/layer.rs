//! The tower layer.

use super::{denial::Denial, service::Refusal, settings::Settings};
use crate::gate::WriteObserver;
use std::sync::Arc;
use tower_layer::Layer;

/// Makes [`ErrNotLeader`](crate::ErrNotLeader) of what a fence refuses; see the [module](super).
#[derive(Clone, Debug)]
pub struct RefusalLayer {
    settings: Option<Settings>,
}

impl RefusalLayer {
    /// Recognises the refusals of the `ValidatingAdmissionPolicy` with this name. Its binding has the same name.
    #[must_use]
    pub fn new(policy: &str) -> Self {
        Self { settings: Some(Settings { denial: Denial::by(policy), observer: None }) }
    }

    /// Looks at no answer.
    pub(crate) const fn none() -> Self {
        Self { settings: None }
    }

    /// Reports each refusal to `observer`. It replaces any earlier observer.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn WriteObserver>) -> Self {
        if let Some(settings) = &mut self.settings {
            settings.observer = Some(observer);
        }
        self
    }
}

impl<S> Layer<S> for RefusalLayer {
    type Service = Refusal<S>;

    fn layer(&self, inner: S) -> Refusal<S> {
        Refusal::new(inner, self.settings.clone())
    }
}
