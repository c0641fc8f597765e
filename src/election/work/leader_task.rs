//! The work of one term, whose panics it catches.

use crate::election::panics::message;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// Running work. As a future, it is ready once the work has ended for any reason and was dropped. Dropping it drops
/// the work.
pub(super) struct LeaderTask<W> {
    /// On the heap, so that it can be dropped in place. None once it has ended.
    work: Option<Pin<Box<W>>>,
    begun: bool,
    /// The work has clones of this token. However the work ends, they are cancelled.
    token: CancellationToken,
    span: Span,
}

impl<W: Future<Output = ()>> LeaderTask<W> {
    /// Calls `work`, but does not poll the future yet.
    pub(super) fn new(span: Span, work: impl FnOnce(CancellationToken) -> W) -> Self {
        let token = CancellationToken::new();
        let work = contain(&span, || Box::pin(work(token.clone())));
        Self { work, begun: false, token, span }
    }

    pub(super) fn cancel(&self) {
        self.token.cancel();
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// Whether the work has been polled.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }
}

impl<W> LeaderTask<W> {
    fn end(&mut self) {
        let work = self.work.take();
        contain(&self.span, || drop(work));
    }
}

impl<W: Future<Output = ()>> Future for LeaderTask<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.begun = true;
        if let Some(work) = &mut this.work {
            // A panic ends the work.
            ready!(contain(&this.span, || work.as_mut().poll(cx)).unwrap_or(Poll::Ready(())));
            this.end();
        }
        Poll::Ready(())
    }
}

impl<W> Drop for LeaderTask<W> {
    fn drop(&mut self) {
        self.end();
        self.token.cancel();
    }
}

/// Calls code of the program. Returns none if it panics.
fn contain<T>(span: &Span, call: impl FnOnce() -> T) -> Option<T> {
    let result = span.in_scope(|| catch_unwind(AssertUnwindSafe(call)));
    result.map_err(|panic| tracing::error!(parent: span, "the work panicked: {}", message(&*panic))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::future::pending;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in the drop");
        }
    }

    #[test]
    fn a_panic_anywhere_ends_the_work() {
        let in_the_call =
            LeaderTask::new(Span::none(), |_| -> std::future::Ready<()> { panic!("in the call") });
        assert!(in_the_call.now_or_never().is_some());
        let in_the_poll = LeaderTask::new(Span::none(), |_| async { panic!("in the poll") });
        assert!(in_the_poll.now_or_never().is_some());
        let (bomb, other) = (Bomb, Bomb);
        let in_the_drop = LeaderTask::new(Span::none(), |_| async move { drop(bomb) });
        assert!(in_the_drop.now_or_never().is_some());
        drop(LeaderTask::new(Span::none(), |_| async move {
            let _other = other;
            pending::<()>().await;
        }));
    }

    #[test]
    fn every_end_cancels_the_token() {
        let mut clone = None;
        let mut shift = LeaderTask::new(Span::none(), |token| {
            clone = Some(token);
            async {}
        });
        let token = clone.unwrap();
        assert!((&mut shift).now_or_never().is_some() && (&mut shift).now_or_never().is_some());
        drop(shift);
        assert!(token.is_cancelled());
    }
}
