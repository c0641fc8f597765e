//! A reconciler whose writes only the leader may send.

use crate::gate::{ErrLeadershipLost, ErrNotLeader};
use futures_util::{FutureExt, future::BoxFuture};
use kube_runtime::controller::Action;
use std::{error::Error, future::Future, sync::Arc};

/// Wraps a reconciler. If the gate refuses or cuts off a write, the reconciler does not fail: it skips the object
/// until it changes, or until [`Candidate::gains`](crate::Candidate::gains) brings all objects back.
///
/// 1. If `reconcile` fails with an error that has [`ErrNotLeader`](crate::ErrNotLeader) among its sources (see
///    [`ErrNotLeader::find`]), the outcome is [`Action::await_change`]. The gate has logged it at level `debug`.
/// 2. For [`ErrLeadershipLost`](crate::ErrLeadershipLost) the outcome is the same, and the log has a line at level
///    `info`. The outcome of that write is unknown. The next leader reconciles all objects, so it sees whether the
///    write was carried out.
/// 3. Any other error goes to the error policy unchanged.
///
/// The same controller needs `reconcile_all_on(candidate.gains())`. Otherwise objects that a follower skipped are
/// never revisited. With it, none is missed, even if the gain comes while `reconcile` is about to fail: the
/// controller keeps a request for an object that is being reconciled, and runs it afterwards.
///
/// The error type must return its cause as its [`source`](Error::source). Types of `thiserror` do so with
/// `#[source]` or `#[from]`, and with `transparent` around a `kube::Error` or an [`ErrGuarded`](crate::gate::ErrGuarded).
/// The error of kube-runtime's `finalizer` does so, too. If a cause was turned into text, it cannot be found, and the error
/// counts as any other error.
///
/// Dropping the returned future drops the future of `reconcile`.
pub fn gated<K, Ctx, F, E>(
    mut reconcile: impl FnMut(Arc<K>, Arc<Ctx>) -> F,
) -> impl FnMut(Arc<K>, Arc<Ctx>) -> BoxFuture<'static, Result<Action, E>>
where
    F: Future<Output = Result<Action, E>> + Send + 'static,
    E: Error + 'static,
{
    move |object, context| reconcile(object, context).map(judge).boxed()
}

/// What the controller learns of a reconciliation.
fn judge<E: Error + 'static>(outcome: Result<Action, E>) -> Result<Action, E> {
    let error = match outcome {
        Ok(action) => return Ok(action),
        Err(error) => error,
    };
    if let Some(lost) = ErrLeadershipLost::find(&error) {
        tracing::info!(
            loss = lost.loss().as_str(),
            "a write was cut off, its outcome is unknown; left to the next leader"
        );
    } else if ErrNotLeader::find(&error).is_none() {
        return Err(error);
    }
    Ok(Action::await_change())
}
