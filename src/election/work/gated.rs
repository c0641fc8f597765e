//! Gated mode: the workload runs on every replica. All reads pass, and only the leader's writes pass.

use crate::election::{
    built::Election,
    ended::{ErrElectionEnded, Finished},
};
use futures_util::FutureExt;
use std::{
    convert::Infallible,
    future::{Future, pending},
    panic::{AssertUnwindSafe, resume_unwind},
    pin::Pin,
    thread,
};
use tokio::time::sleep;

impl Election {
    /// Runs the election while `workload` runs. Returns the workload's output and how the election left the lease.
    ///
    /// When the workload ends or panics, the election drops it and [stops](crate::election::Running::stop). Writes that
    /// the workload left behind may finish within the drain timeout. After the stop, a panic of the workload continues
    /// in the caller. To shut down on a signal, let the workload end on the signal, as kube-runtime's
    /// `shutdown_on_signal()` does, or use [`run_until`](Self::run_until).
    ///
    /// Dropping the future drops the workload and closes the gate at once. The lease then expires by itself.
    ///
    /// # Errors
    /// [`ErrElectionEnded`] if the election ended without an order to stop
    /// ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). The workload is dropped.
    ///
    /// # Panics
    /// If the workload panics, and outside a tokio runtime.
    pub async fn run<F: Future>(self, workload: F) -> Result<Finished<F::Output>, ErrElectionEnded> {
        let Finished { output, lease } =
            self.run_unless(pending::<Infallible>(), contained(workload)).await?;
        let Ok(output) = output;
        Ok(Finished::new(output, lease))
    }

    /// Runs as [`run`](Self::run) does, but limits the workload's time after `shutdown`. From then on the workload has
    /// the [grace](crate::election::ElectionBuilder::grace) to end. Then the gate closes. The workload continues until
    /// its admitted writes have finished or the drain timeout is over, and is then dropped. If the workload did not
    /// end, the output is `None`.
    ///
    /// This function does not tell the workload about the shutdown; use the same signal for both. Some workloads do not
    /// end on the signal. For example, a `Controller` of kube-runtime ends only after it has listed its objects once.
    /// Without the permission to list them, it never ends.
    ///
    /// ```no_run
    /// use kube_leader_gate::{CancellationToken, Election};
    ///
    /// # async fn controllers(_: kube_client::Client, _: CancellationToken) {}
    /// # async fn example(config: kube_client::Config, shutdown: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
    /// let election = Election::builder("my-namespace", "my-controller").build(&config)?;
    /// let client = election.client(&config)?;
    /// let run = election.run_until(shutdown.clone().cancelled_owned(), controllers(client, shutdown));
    /// if run.await?.output.is_none() {
    ///     eprintln!("the controllers did not end in time");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping the future has the same effect as with [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run), and if `shutdown` panics.
    pub async fn run_until<F: Future>(
        self,
        shutdown: impl Future<Output = ()>,
        workload: F,
    ) -> Result<Finished<Option<F::Output>>, ErrElectionEnded> {
        let Finished { output, lease } = self.run_unless(shutdown, contained(workload)).await?;
        Ok(Finished::new(output.ok(), lease))
    }

    /// Runs the election while `workload` runs. Stops when the workload ends, or when its grace after `shutdown` is over.
    async fn run_unless<T, O>(
        self,
        shutdown: impl Future<Output = T>,
        mut workload: Pin<Box<impl Future<Output = thread::Result<O>>>>,
    ) -> Result<Finished<Result<O, T>>, ErrElectionEnded> {
        let grace = self.grace;
        let mut running = self.start();
        let mut output = tokio::select! {
            biased;
            output = &mut workload => Ok(output),
            ended = running.died() => return Err(ended),
            shutdown = shutdown => Err(shutdown),
        };
        if output.is_err() {
            running.warn_if_the_stop_is_slow();
            tokio::select! {
                biased;
                ended = &mut workload => output = Ok(ended),
                ended = running.died() => return Err(ended),
                () = sleep(grace) => {
                    running.span.in_scope(|| {
                        tracing::warn!(?grace, "the workload did not end within its grace; it is dropped once its writes have ended");
                    });
                }
            }
        }
        let lease = match &mut output {
            Ok(_) => {
                drop(workload);
                running.stop().await
            }
            late => running.stop_with(async { *late = Ok(workload.await) }).await,
        };
        let output = output.map(|output| output.unwrap_or_else(|panic| resume_unwind(panic)));
        Ok(Finished::new(output, lease))
    }
}

/// Puts the workload on the heap, so that it can be dropped before the election releases the lease. Catches a panic of
/// the workload, so that it can continue after the release.
fn contained<F: Future>(workload: F) -> Pin<Box<impl Future<Output = thread::Result<F::Output>>>> {
    Box::pin(AssertUnwindSafe(workload).catch_unwind())
}
