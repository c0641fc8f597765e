//! A reconciler that leaves to the leader what only the leader may do.

use crate::gate::GateError;
use kube_runtime::controller::Action;
use pin_project_lite::pin_project;
use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of a [`gated`] reconciler.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Gated<F> {
        #[pin]
        reconciling: F,
    }
}

/// Wraps a reconciler so that a write which the gate refuses or cuts off is no error: the object is left alone until it
/// changes, or until [`Candidate::gains`](crate::Candidate::gains) brings all objects back.
///
/// 1. Fails `reconcile` with an error that has [`ErrNotLeader`](crate::ErrNotLeader) in its source chain (see
///    [`GateError::find`]), the outcome is [`Action::await_change`], and the log has a line at level `debug`.
/// 2. The same for [`ErrLeadershipLost`](crate::ErrLeadershipLost), at level `info`. The outcome of that write is unknown.
///    Whoever leads next reconciles all objects and so finds what became of it; this process does so at its own next gain.
/// 3. Anything else is passed on as it is, to the error policy.
///
/// It needs `reconcile_all_on(candidate.gains())` on the same controller: without that, nothing brings back what a follower
/// left alone. With it nothing is missed, also not when the gain comes while `reconcile` is still about to fail: the
/// controller keeps the request for an object that is being reconciled, and runs it afterwards.
///
/// The error type must name its cause as its [`source`](Error::source), as those of `thiserror` do with `#[source]`,
/// `#[from]` or `transparent`, and as that of kube-runtime's `finalizer` does. A cause that was turned into text cannot be
/// found, and counts as any other error.
///
/// Dropping the future drops `reconcile`'s.
pub fn gated<K, Ctx, F, E>(
    mut reconcile: impl FnMut(Arc<K>, Arc<Ctx>) -> F,
) -> impl FnMut(Arc<K>, Arc<Ctx>) -> Gated<F>
where
    F: Future<Output = Result<Action, E>>,
    E: Error + 'static,
{
    move |object, context| Gated { reconciling: reconcile(object, context) }
}

// === impl Gated ===

impl<F, E> Future for Gated<F>
where
    F: Future<Output = Result<Action, E>>,
    E: Error + 'static,
{
    type Output = Result<Action, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(self.project().reconciling.poll(cx));
        Poll::Ready(outcome.or_else(|error| {
            match GateError::find(&error) {
                Some(GateError::NotLeader(refused)) => tracing::debug!(
                    verb = %refused.verb(),
                    resource = refused.resource(),
                    holder = refused.holder(),
                    "left to the leader"
                ),
                Some(GateError::LeadershipLost(lost)) => tracing::info!(
                    loss = lost.loss().as_str(),
                    "a write was cut off, its outcome is unknown; left to the next leader"
                ),
                None => return Err(error),
            }
            Ok(Action::await_change())
        }))
    }
}
