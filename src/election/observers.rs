//! Observers with a task of their own. The task runs beside the election and ends with it.

use super::candidate::Candidate;
use futures_util::future::BoxFuture;
use std::{fmt, future::Future, time::Duration};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

type Attend = Box<dyn FnOnce(Candidate, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// The observers to start with an election.
#[derive(Default)]
pub(super) struct Observers(Vec<Attend>);

/// The observers of a running election. Dropping this ends their tasks.
#[derive(Debug, Default)]
pub(super) struct RunningObservers {
    tasks: JoinSet<()>,
    over: CancellationToken,
}

impl Observers {
    /// Adds an observer. Its token is cancelled once the election has stopped; then it must finish soon.
    pub(super) fn add<F>(
        &mut self,
        attend: impl FnOnce(Candidate, CancellationToken) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.0.push(Box::new(|candidate, over| Box::pin(attend(candidate, over))));
    }

    pub(super) fn start(self, candidate: &Candidate, span: &Span) -> RunningObservers {
        let mut running = RunningObservers::default();
        for attend in self.0 {
            let (candidate, over) = (candidate.clone(), running.over.clone());
            // Calls it in the task, so that a panic of `attend` itself ends nothing else.
            running.tasks.spawn(async move { attend(candidate, over).await }.instrument(span.clone()));
        }
        running
    }
}

impl RunningObservers {
    /// Waits until all observers have finished, but at most `bound`.
    pub(super) async fn finish(&mut self, bound: Duration) {
        self.over.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(bound, all).await;
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}
