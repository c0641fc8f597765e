//! The elector's end of the task that keeps the `LeaseCandidate`.

use super::{
    keeper::{Keeper, Told},
    record::Card,
    settings::Coordination,
};
use crate::{
    api::Complaint,
    leadership::{Leadership, Moment},
    lease::{Identity, LeaseName, LeaseTiming},
};
use kube_client::Client;
use std::{fmt, future::pending, sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinSet};
use tracing::{Instrument, Span};

/// How long the coordinator may take to choose, beyond the lease duration. It waits 5 s for the answers to its pings,
/// and looks every 5 s.
const CHOOSING: Duration = Duration::from_secs(30);

/// What a program passes in to take part in a coordinated election.
pub(in crate::election) struct Enrolment {
    client: Client,
    coordination: Coordination,
}

/// This candidate among those that the coordinator chooses from. Dropping it ends the task, and leaves the object.
#[derive(Debug)]
pub(in crate::election) struct Standing {
    stands: watch::Sender<bool>,
    told: watch::Receiver<Told>,
    drain_timeout: Duration,
    patience: Duration,
    /// When the admitted writes are cut off, since this candidate gives way.
    cut_off_at: Option<Moment>,
    vacant_since: Option<Moment>,
    vacancy: Complaint,
    _keeper: JoinSet<()>,
}

// === impl Enrolment ===

impl Enrolment {
    pub(in crate::election) fn new(client: Client, coordination: Coordination) -> Self {
        Self { client, coordination }
    }

    /// Spawns the task in the current runtime. This candidate does not stand yet.
    pub(in crate::election) fn start(
        self,
        lease: LeaseName,
        identity: Identity,
        timing: LeaseTiming,
        leadership: Leadership,
        drain_timeout: Duration,
        span: &Span,
    ) -> Standing {
        let (stands, asked) = watch::channel(false);
        let (tell, told) = watch::channel(Told::default());
        let card = Card { identity, lease, coordination: self.coordination };
        let keeper = Keeper::new(self.client, card, timing, leadership, asked, tell);
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.run().instrument(span.clone()));
        Standing {
            stands,
            told,
            drain_timeout,
            patience: timing.lease_duration() + CHOOSING,
            cut_off_at: None,
            vacant_since: None,
            vacancy: Complaint::new("no coordinator names a holder"),
            _keeper: tasks,
        }
    }
}

impl fmt::Debug for Enrolment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enrolment").field("coordination", &self.coordination).finish_non_exhaustive()
    }
}

// === impl Standing ===

impl Standing {
    /// Says whether the coordinator may choose this candidate from now on.
    pub(in crate::election) fn stand(&self, stands: bool) {
        self.stands.send_if_modified(|it| std::mem::replace(it, stands) != stands);
    }

    /// Why the coordinator cannot choose this candidate, or does not.
    pub(in crate::election) fn trouble(&self) -> Option<Arc<str>> {
        self.told.borrow().trouble.clone().or_else(|| self.vacancy.text().cloned())
    }

    /// Waits until the trouble of `standing` may have changed. Cancel-safe.
    pub(in crate::election) async fn changed(standing: &mut Option<Self>) {
        if let Some(standing) = standing
            && standing.told.changed().await.is_ok()
        {
            return;
        }
        // An election without a coordinator. Or the task has panicked: the coordinator then forgets this candidate.
        pending::<()>().await;
    }

    /// A future that waits until the coordinator can no longer choose this candidate, or its object cannot be deleted.
    pub(in crate::election) fn withdrawn(&self) -> impl Future<Output = ()> + use<> {
        let mut told = self.told.clone();
        async move {
            // An error means that the task is gone.
            let _ = told.wait_for(|told| !told.listed).await;
        }
    }

    /// When the admitted writes are cut off, if this candidate begins at `now` to give way, or has begun earlier.
    pub(in crate::election) fn gives_way(&mut self, now: Moment) -> Moment {
        *self.cut_off_at.get_or_insert_with(|| now.saturating_add(self.drain_timeout))
    }

    /// Records that this candidate no longer gives way.
    pub(in crate::election) fn gave_way(&mut self) {
        self.cut_off_at = None;
    }

    /// Takes in whether the lease waits for the coordinator at `now`. Returns whether the trouble has changed.
    pub(in crate::election) fn is_vacant(&mut self, vacant: bool, now: Moment) -> bool {
        let before = self.vacancy.text().is_some();
        self.vacant_since = vacant.then(|| self.vacant_since.unwrap_or(now));
        match self.vacant_since {
            None => self.vacancy.settle(now),
            Some(since) if now.saturating_since(since) >= self.patience => {
                let details = "enable the feature gate CoordinatedLeaderElection of the API server; a strategy of your \
                               own needs a coordinator of your own";
                self.vacancy.raise("vacant", &details, now);
            }
            Some(_) => {}
        }
        before != self.vacancy.text().is_some()
    }
}

#[cfg(all(test, feature = "test-util"))]
#[path = "standing_tests.rs"]
mod tests;
