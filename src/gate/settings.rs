//! What all gates of one layer share: the decision about a write, and the guard of any other future.

use super::{
    attempt::{Attempt, Refused},
    error::ErrNotLeader,
    future::{ResponseFuture, Right},
    observer::{WriteObserver, beside},
};
use crate::{
    leadership::{Leadership, WritePermit},
    request::Verb,
};
use std::{error::Error, future::Future, pin::Pin, sync::Arc};

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
        Self { observer: Some(beside(self.observer, observer)), ..self }
    }

    /// Makes the error of a write that was not admitted.
    pub(super) fn refuse(&self, refused: Refused) -> Box<ErrNotLeader> {
        let error = Box::new(ErrNotLeader::new(refused, self.leadership.follower_view()));
        let attempt = error.attempt();
        tracing::debug!(
            verb = attempt.verb().map(Verb::as_str),
            resource = attempt.request().map(|request| tracing::field::display(request.target())),
            label = attempt.label(),
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
        let permit = self.leadership.admit().ok_or_else(|| self.refuse(Refused::Labelled(label)))?;
        if let Some(observer) = &self.observer {
            observer.admitted(&Attempt::Labelled(label));
        }
        Ok(permit)
    }

    /// Runs a write that is no request, if it is admitted.
    pub(crate) fn guard<F>(
        &self,
        label: &'static str,
        future: F,
    ) -> ResponseFuture<Pin<Box<F>>, &'static str> {
        // Put the future on the heap at once: a whole reconciliation is large, and a debug build copies it several times on the
        // stack.
        let future = Box::pin(future);
        match self.admit_labelled(label) {
            Ok(permit) => {
                ResponseFuture::admitted(future, Right::Whole(permit), label, self.observer.clone())
            }
            Err(error) => ResponseFuture::rejected(error),
        }
    }
}

impl Leadership {
    /// Runs `future` only while this process leads, as [`Candidate::guard`](crate::Candidate::guard) does. It reports
    /// to no observer.
    pub fn guard<F, T, E>(&self, label: &'static str, future: F) -> ResponseFuture<Pin<Box<F>>, &'static str>
    where
        F: Future<Output = Result<T, E>>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Settings::new(self.clone(), None).guard(label, future)
    }
}
