//! The response future.

use crate::leadership::Leadership;
use http::{Response, StatusCode};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`ServerTime`](super::ServerTime). Dropping it drops the request.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        writes: Option<Leadership>,
    }
}

impl<F> ResponseFuture<F> {
    pub(super) const fn new(inner: F, writes: Option<Leadership>) -> Self {
        Self { inner, writes }
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(this.inner.poll(cx));
        // A 504 says that the time was over, not that nothing was done (rule S4).
        let in_doubt =
            outcome.as_ref().is_ok_and(|response| response.status() == StatusCode::GATEWAY_TIMEOUT);
        if let Some(leadership) = this.writes.as_ref().filter(|_| in_doubt) {
            leadership.note_unanswered();
        }
        Poll::Ready(outcome)
    }
}
