//! Gated mode: the workload runs on every replica, reads flow, and only the leader's writes pass.

use crate::{
    election::{Election, ElectionEnded},
    lease::Lock,
};
use futures_util::FutureExt;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, resume_unwind},
};

impl<L: Lock> Election<L> {
    /// Runs the election while `workload` runs, and returns the workload's output once the lease has been released.
    ///
    /// When the workload ends, by itself or in a panic, the order of rule S4 follows: it is dropped, the gate closes, the
    /// writes that it has left behind may finish within the drain timeout while the lease is still renewed, and then the
    /// lease is given up. A panic goes on after that. To shut down on a signal, let the workload end on it.
    /// [`Leader::ended`](crate::Leader::ended) tells whether the lease was released or is left to run out.
    ///
    /// Dropping the future drops the workload and closes the gate at once; the lease then runs out by itself.
    ///
    /// # Errors
    /// [`ElectionEnded`] when the election ended unasked (rule S10): the workload is dropped, and the gate is closed.
    ///
    /// # Panics
    /// When the workload does, and outside of a tokio runtime.
    pub async fn run<F: Future>(self, workload: F) -> Result<F::Output, ElectionEnded> {
        let running = self.start();
        // On the heap, so that it can be dropped before the gate closes.
        let mut workload = Box::pin(AssertUnwindSafe(workload).catch_unwind());
        let output = tokio::select! {
            biased;
            output = &mut workload => output,
            ended = running.ended() => return Err(ended),
        };
        drop(workload);
        running.stop().await;
        output.map_err(|panic| resume_unwind(panic))
    }
}
