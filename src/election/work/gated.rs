//! Gated mode: the workload runs on every replica, reads flow, and only the leader's writes pass.

use crate::{
    election::{
        built::Election,
        ended::{ErrElectionEnded, Finished},
    },
    lease::Lock,
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

impl<L: Lock> Election<L> {
    /// Runs the election while `workload` runs. Once the lease has been released, it returns the workload's output, and how
    /// the lease was left.
    ///
    /// When the workload ends, by itself or in a panic, the order of rule S4 follows: it is dropped, the gate closes, the
    /// writes that it has left behind may finish within the drain timeout while the lease is still renewed, and then the
    /// lease is given up, later if a write has ended without an answer (see
    /// [`Running::stop`](crate::election::Running::stop)). A panic goes on after that. To shut down on a signal, let the workload end on it, or use
    /// [`run_until`](Self::run_until).
    ///
    /// Dropping the future drops the workload and closes the gate at once; the lease then runs out by itself.
    ///
    /// # Errors
    /// [`ErrElectionEnded`] when the election ended without being told to (rule S10): the workload is dropped, and the gate is closed.
    ///
    /// # Panics
    /// When the workload does, and outside of a tokio runtime.
    pub async fn run<F: Future>(self, workload: F) -> Result<Finished<F::Output>, ErrElectionEnded> {
        let Finished { output, lease } =
            self.run_unless(pending::<Infallible>(), contained(workload)).await?;
        match output {
            Ok(output) => Ok(Finished::new(output, lease)),
            Err(never) => match never {},
        }
    }

    /// As [`run`](Self::run), and gives a workload that should end on `shutdown` no more than the
    /// [grace](crate::election::ElectionBuilder::grace) from there. Then the gate closes, the workload goes on until its
    /// admitted writes have finished, or the drain timeout is over, and is dropped. The output is none if it has not ended.
    ///
    /// The workload learns of the shutdown by its own means. But a `Controller` of kube-runtime, for one, does not end
    /// before it has listed its objects once, which it never has where it may not list them. Kubernetes kills a process
    /// that does not end, and its lease has to run out then.
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
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run), and when `shutdown` does.
    pub async fn run_until<F: Future>(
        self,
        shutdown: impl Future<Output = ()>,
        workload: F,
    ) -> Result<Finished<Option<F::Output>>, ErrElectionEnded> {
        let (grace, candidate) = (self.grace, self.candidate());
        let too_late = async {
            shutdown.await;
            sleep(grace).await;
            let lease = candidate.lease();
            tracing::warn!(%lease, ?grace, "the workload did not end within its grace; it is dropped once its writes have ended");
        };
        let Finished { output, lease } = self.run_unless(too_late, contained(workload)).await?;
        Ok(Finished::new(output.ok(), lease))
    }

    /// Runs the election while `workload` runs, and stops when it ends, or when it is `too_late`.
    async fn run_unless<T, O>(
        self,
        too_late: impl Future<Output = T>,
        mut workload: Pin<Box<impl Future<Output = thread::Result<O>>>>,
    ) -> Result<Finished<Result<O, T>>, ErrElectionEnded> {
        let running = self.start();
        let mut output = tokio::select! {
            biased;
            output = &mut workload => Ok(output),
            ended = running.died() => return Err(ended),
            late = too_late => Err(late),
        };
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

/// On the heap, so that it can be dropped before the lease is given up; its panic is kept until then.
fn contained<F: Future>(workload: F) -> Pin<Box<impl Future<Output = thread::Result<F::Output>>>> {
    Box::pin(AssertUnwindSafe(workload).catch_unwind())
}
