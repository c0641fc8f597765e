//! What all gates of one layer share, and the decision that they make for a write.

use super::{
    attempt::{Attempt, Refused},
    error::ErrNotLeader,
    observer::WriteObserver,
};
use crate::{
    leadership::{Admission, Leadership},
    request::Verb,
};
use std::sync::Arc;

/// In the extensions of an exempted request, if a layer below the gate [asks](Leadership::marks) for it.
#[derive(Clone)]
pub(crate) struct Exempted;

/// Admits writes and refuses them, and reports both. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) leadership: Leadership,
    pub(super) observer: Option<Arc<dyn WriteObserver>>,
}

impl Settings {
    pub(crate) fn new(leadership: Leadership, observer: Option<Arc<dyn WriteObserver>>) -> Self {
        Self { leadership, observer }
    }

    pub(super) fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Admits a write if this process leads.
    pub(super) fn admit(&self, attempt: &Attempt<'_>) -> Option<Admission> {
        let admission = self.leadership.admit()?;
        if let Some(observer) = &self.observer {
            observer.admitted(attempt);
        }
        Some(admission)
    }

    /// Makes the error of a write that was not admitted. `upgrade`: it is a request that asks for an upgrade.
    pub(super) fn refuse(&self, refused: Refused, upgrade: bool) -> ErrNotLeader {
        let error = ErrNotLeader::new(refused, upgrade, self.leadership.bystander());
        tracing::debug!(
            verb = error.attempt().verb().map(Verb::as_str),
            resource = error.attempt().request().map(|request| tracing::field::display(request.target())),
            label = error.attempt().label(),
            holder = error.holder(),
            "{error}"
        );
        if let Some(observer) = &self.observer {
            observer.rejected(&error);
        }
        error
    }
}
