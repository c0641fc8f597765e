//! The future of an admitted write: a response of the gate, or any other future under guard.

use super::{
    attempt::Admitted,
    error::{ErrLeadershipLost, ErrNotLeader, WriteObserver},
};
use crate::{leadership::WritePermit, request::Verb};
use pin_project_lite::pin_project;
use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::futures::OwnedNotified;

pin_project! {
    /// The future of [`WriteGate`](super::WriteGate) and of [`Leadership::guard`](crate::Leadership::guard).
    ///
    /// `W` is what it keeps of the write for its error: the [`Verb`] of a request, or the label of another write.
    ///
    /// Dropping it drops the write, as with any other service. The outcome of the write is then unknown.
    ///
    /// # Panics
    /// If it is polled after it has completed. For a read or an exempted request, the inner service's future decides
    /// whether it panics.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, W = Verb> {
        #[pin]
        state: State<F, W>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StateProj]
    enum State<F, W> {
        // A read, or a request that the policy exempts.
        Passed { #[pin] inner: F },
        // The fields drop in this order: the write still counts while `inner` drops.
        Admitted {
            #[pin]
            inner: F,
            #[pin]
            ended: OwnedNotified,
            admission: WritePermit,
            write: W,
            observer: Option<Arc<dyn WriteObserver>>,
        },
        // None once it has completed.
        Rejected { error: Option<Box<ErrNotLeader>> },
    }
}

impl<F, W> ResponseFuture<F, W> {
    #[inline]
    pub(super) fn passed(inner: F) -> Self {
        Self { state: State::Passed { inner } }
    }

    #[inline]
    pub(super) fn admitted(
        inner: F,
        admission: WritePermit,
        write: W,
        observer: Option<Arc<dyn WriteObserver>>,
    ) -> Self {
        // If the term ended before this line, the first poll sees it. If it ends later, the write is woken.
        let ended = admission.term_ended();
        Self { state: State::Admitted { inner, ended, admission, write, observer } }
    }

    #[inline]
    pub(super) fn rejected(error: Box<ErrNotLeader>) -> Self {
        Self { state: State::Rejected { error: Some(error) } }
    }
}

impl<F, W, T, E> Future for ResponseFuture<F, W>
where
    W: Admitted,
    F: Future<Output = Result<T, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = Result<T, Box<dyn Error + Send + Sync>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let output = match state.as_mut().project() {
            StateProj::Passed { inner } => return inner.poll(cx).map_err(Into::into),
            StateProj::Admitted { mut inner, mut ended, admission, write, observer } => loop {
                // Check before each poll, since each poll may send (rule S2).
                if !admission.is_valid() {
                    let error = ErrLeadershipLost::new(*write, admission.loss());
                    if let Some(observer) = observer {
                        observer.cut_off(&error);
                    }
                    break Err(error.into());
                }
                if let Poll::Ready(outcome) = inner.as_mut().poll(cx) {
                    // An error is not an answer: the write may have been sent before the error (rule S4).
                    if outcome.is_ok() {
                        admission.answered();
                    }
                    break outcome.map_err(Into::into);
                }
                // The wake-up may belong to another grant. Check again, and wait for the next end.
                ready!(ended.as_mut().poll(cx));
                ended.set(admission.term_ended());
            },
            StateProj::Rejected { error } => {
                Err(error.take().expect("ResponseFuture polled after completion") as _)
            }
        };
        // This drops the write first, and then counts it out.
        state.set(State::Rejected { error: None });
        Poll::Ready(output)
    }
}
