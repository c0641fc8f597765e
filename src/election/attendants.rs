//! Observers that need a task of their own, beside the election and no longer than it.

use super::candidate::Candidate;
use futures_util::future::BoxFuture;
use std::{fmt, future::Future, time::Duration};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

type Attend = Box<dyn FnOnce(Candidate, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// What an election is to be attended by.
#[derive(Default)]
pub(super) struct Attendants(Vec<Attend>);

/// Attendants under way; dropping them ends them.
#[derive(Debug)]
pub(super) struct Attending {
    tasks: JoinSet<()>,
    over: CancellationToken,
}

impl Attendants {
    /// Adds one. The token is cancelled once the election has stopped: what is left to tell must be told soon then.
    pub(super) fn add<F>(
        &mut self,
        attend: impl FnOnce(Candidate, CancellationToken) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.0.push(Box::new(|candidate, over| Box::pin(attend(candidate, over))));
    }

    pub(super) fn start(self, candidate: &Candidate, span: &Span) -> Attending {
        let over = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for attend in self.0 {
            tasks.spawn(attend(candidate.clone(), over.clone()).instrument(span.clone()));
        }
        Attending { tasks, over }
    }
}

impl Attending {
    /// Lets them finish, within `bound`.
    pub(super) async fn finish(&mut self, bound: Duration) {
        self.over.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(bound, all).await;
    }
}

impl fmt::Debug for Attendants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attendants").field(&self.0.len()).finish()
    }
}
