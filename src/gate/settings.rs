//! What all gates of one layer share: the decision about a write, and the guard of any other future.

use super::{
    attempt::{Attempt, Refused},
    error::{ErrNotLeader, WriteObserver},
    future::ResponseFuture,
};
use crate::leadership::{Leadership, WritePermit};
use std::{error::Error, future::Future, sync::Arc};

/// In the extensions of a write, if a layer below the gate [asks](Leadership::marks) for it. The write is exempted if no
/// gate has admitted it: what one gate admits, no other gate exempts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Admitted,
    Exempted,
}

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
    pub(super) fn admit(&self, attempt: &Attempt<'_>) -> Option<WritePermit> {
        let admission = self.leadership.admit()?;
        if let Some(observer) = &self.observer {
            observer.admitted(attempt);
        }
        Some(admission)
    }

    /// Makes the error of a write that was not admitted.
    pub(super) fn refuse(&self, refused: Refused) -> Box<ErrNotLeader> {
        let error = Box::new(ErrNotLeader::new(refused, self.leadership.bystander()));
        let request = error.attempt().request();
        tracing::debug!(
            verb = request.map(|request| request.verb().as_str()),
            resource = request.map(|request| tracing::field::display(request.target())),
            label = error.attempt().label(),
            holder = error.holder(),
            "{error}"
        );
        if let Some(observer) = &self.observer {
            observer.rejected(&error);
        }
        error
    }

    /// Admits a write that is no request.
    pub(crate) fn admit_labelled(&self, label: &'static str) -> Result<WritePermit, Box<ErrNotLeader>> {
        self.admit(&Attempt::Labelled(label)).ok_or_else(|| self.refuse(Refused::Labelled(label)))
    }

    /// Admits a write that is no request, and then begins it.
    pub(crate) fn guard<F>(
        &self,
        label: &'static str,
        begin: impl FnOnce() -> F,
    ) -> ResponseFuture<F, &'static str> {
        match self.admit_labelled(label) {
            Ok(admission) => ResponseFuture::admitted(begin(), admission, label, self.observer.clone()),
            Err(error) => ResponseFuture::rejected(error),
        }
    }
}

impl Leadership {
    /// Runs `future` only while this process leads, as [`Candidate::guard`](crate::Candidate::guard) does. It reports
    /// to no observer.
    pub fn guard<F, T, E>(&self, label: &'static str, future: F) -> ResponseFuture<F, &'static str>
    where
        F: Future<Output = Result<T, E>>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Settings::new(self.clone(), None).guard(label, || future)
    }
}
