//! The future of an admitted write: a response of the gate, or any other future under guard.

use super::{
    attempt::Admitted,
    error::{ErrLeadershipLost, ErrNotLeader},
    observer::WriteObserver,
};
use crate::{
    leadership::WritePermit,
    request::{Receiver, Verb, leaves_open},
};
use http::Response;
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
    /// `W` is what the future keeps of the write: a few facts about a request, or the label of another write.
    ///
    /// Dropping it drops the write, as with any other service. The outcome of the write is then unknown.
    ///
    /// # Panics
    /// If it is polled after it has completed. For a read or an exempted request, the inner service's future decides
    /// whether it panics.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, W = Sent> {
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
            right: Right,
            write: W,
            observer: Option<Arc<dyn WriteObserver>>,
        },
        // None after the future has completed.
        Rejected { error: Option<Box<ErrNotLeader>> },
    }
}

/// The right of an admitted write to go on.
#[derive(Debug)]
pub(super) enum Right {
    Whole(WritePermit),
    /// The body of the request holds the permit too, until the body is over.
    WithBody(Arc<WritePermit>),
}

/// What is kept of an admitted request.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub(super) verb: Verb,
    pub(super) receiver: Receiver,
    pub(super) has_body: bool,
}

impl<F, W> ResponseFuture<F, W> {
    #[inline]
    pub(super) fn passed(inner: F) -> Self {
        Self { state: State::Passed { inner } }
    }

    #[inline]
    pub(super) fn admitted(
        inner: F,
        right: Right,
        write: W,
        observer: Option<Arc<dyn WriteObserver>>,
    ) -> Self {
        // If the term ended before this line, the first poll sees it. If it ends later, the write is woken.
        let ended = right.permit().term_ended();
        Self { state: State::Admitted { inner, ended, right, write, observer } }
    }

    #[inline]
    pub(super) fn rejected(error: Box<ErrNotLeader>) -> Self {
        Self { state: State::Rejected { error: Some(error) } }
    }
}

impl<F, W, T, E> Future for ResponseFuture<F, W>
where
    W: Admitted<T>,
    F: Future<Output = Result<T, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = Result<T, W::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let output = match state.as_mut().project() {
            StateProj::Passed { inner } => {
                return inner.poll(cx).map_err(|error| W::Error::from(error.into()));
            }
            StateProj::Admitted { mut inner, mut ended, right, write, observer } => loop {
                let permit = right.permit();
                // Check before each poll, since each poll may send (rule S2).
                if !permit.is_valid() {
                    let (verb, label) = write.name();
                    let error = ErrLeadershipLost::new(verb, label, permit.loss());
                    let observer = observer.take();
                    // Drop the write before the observer learns of the loss, because the observer may panic.
                    state.set(State::Rejected { error: None });
                    observer.inspect(|observer| observer.cut_off(&error));
                    return Poll::Ready(Err(Box::<dyn Error + Send + Sync>::from(error).into()));
                }
                if let Poll::Ready(outcome) = inner.as_mut().poll(cx) {
                    // An error is not an answer: the write may have been sent before the error (rule S4).
                    if outcome.as_ref().is_ok_and(|answer| write.is_settled_by(answer)) {
                        right.answered();
                    }
                    break outcome.map_err(|error| W::Error::from(error.into()));
                }
                // The wake-up may belong to another grant. Check again, and wait for the next end.
                ready!(ended.as_mut().poll(cx));
                ended.set(permit.term_ended());
            },
            StateProj::Rejected { error } => {
                let error: Box<dyn Error + Send + Sync> =
                    error.take().expect("ResponseFuture polled after completion");
                Err(error.into())
            }
        };
        // This drops the write first. Only then the write no longer counts as under way.
        state.set(State::Rejected { error: None });
        Poll::Ready(output)
    }
}

// === impl Right ===

impl Right {
    pub(super) fn permit(&self) -> &WritePermit {
        match self {
            Self::Whole(permit) => permit,
            Self::WithBody(permit) => permit,
        }
    }

    /// Notes that the receiver has answered. If the body is not over yet, notes nothing: the write then has no answer, because
    /// nothing shows what becomes of the rest of the body (rule S4).
    fn answered(&mut self) {
        let permit = match self {
            Self::Whole(permit) => Some(permit),
            Self::WithBody(permit) => Arc::get_mut(permit),
        };
        permit.into_iter().for_each(WritePermit::answered);
    }
}

// === impl Sent ===

impl<B> Admitted<Response<B>> for Sent {
    type Error = Box<dyn Error + Send + Sync>;

    fn name(self) -> (Option<Verb>, Option<&'static str>) {
        (Some(self.verb), None)
    }

    fn is_settled_by(self, answer: &Response<B>) -> bool {
        // The API server reads the whole body before it answers. A backend may answer earlier.
        let reads_first = self.receiver == Receiver::ApiServer || !self.has_body;
        reads_first && !leaves_open(answer.status())
    }
}
