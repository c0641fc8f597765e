//! The handle to ask about one candidate's election.

use super::{
    ended::{ErrElectionEnded, LeaseEnd},
    hooks::Hooks,
    pulse::Pulse,
};
use crate::{
    leadership::{Changes, ENDED, Leadership, LeadershipState, Term, Terms},
    lease::{Identity, LeaseName, LeaseTiming},
};
use futures_util::{Stream, StreamExt, stream};
use std::{error::Error, fmt, sync::Arc, time::Duration};

/// A view of an election, from this process's own candidate. Clones are cheap and may outlive the election.
///
/// ```no_run
/// # async fn example(candidate: kube_leader_gate::Candidate) -> Result<(), Box<dyn std::error::Error>> {
/// candidate.check(std::time::Duration::from_secs(20))?; // a liveness probe
/// let term = candidate.elected().await;
/// println!("{} leads in term {term}", candidate.identity());
/// # Ok(())
/// # }
/// ```
///
/// All answers are of this instant, judged by the deadline: a process that was frozen past it does not lead when it wakes.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub(crate) leadership: Leadership,
    profile: Arc<Profile>,
}

/// What all handles of one candidate share: what does not change about it, and its pulse.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) lease: LeaseName,
    pub(super) identity: Identity,
    pub(super) timing: LeaseTiming,
    pub(super) pulse: Arc<Pulse>,
    pub(super) hooks: Hooks,
}

/// Why an election is not healthy; see [`Candidate::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrUnhealthy {
    /// The election has ended: this process will never lead again.
    Ended,
    /// This process holds the lease, and has not renewed it for longer than is tolerated.
    NotRenewed {
        /// How long ago the last successful renewal was sent.
        since: Duration,
        /// How long was tolerated.
        tolerated: Duration,
    },
}

// === impl Candidate ===

impl Candidate {
    pub(super) fn new(leadership: Leadership, profile: Arc<Profile>) -> Self {
        Self { leadership, profile }
    }

    /// Whether this process leads.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leadership.is_leader()
    }

    /// Whether a write would be admitted: not for a follower, and not for a leader that drains its writes to stop.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.leadership.can_write()
    }

    /// The last known holder of the lease.
    #[must_use]
    pub fn holder(&self) -> Option<Arc<str>> {
        self.leadership.holder()
    }

    /// What keeps the election from making progress, in words for a person: lease calls that fail, and what to do
    /// about it, or a lease that makes no sense. None as soon as it has passed. The log says the same.
    ///
    /// A watch that is refused is no trouble: the lease is polled then.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.leadership.trouble()
    }

    /// The term in which this process leads.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        self.leadership.term()
    }

    /// The name under which this candidate contends.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.profile.identity
    }

    /// The lease that it contends for.
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        &self.profile.lease
    }

    /// The election's times.
    #[must_use]
    pub fn timing(&self) -> LeaseTiming {
        self.profile.timing
    }

    /// What observers see now.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        self.leadership.state()
    }

    /// How long this process may still write unless it renews; none for a follower.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.leadership.deadline()?;
        Some(deadline.saturating_since(self.leadership.now())).filter(|left| !left.is_zero())
    }

    /// How many admitted writes have not finished.
    #[must_use]
    pub fn writes_under_way(&self) -> usize {
        self.leadership.writes_under_way()
    }

    /// Waits until this process may write, and returns the term. Cancel-safe.
    ///
    /// It goes on waiting while the election stands down. Once the election has [`ended`](Self::ended), it never returns:
    /// this process cannot write any more. [`Election::run`](super::Election::run) drops its workload then. A task of your
    /// own waits for both:
    ///
    /// ```no_run
    /// # async fn example(candidate: kube_leader_gate::Candidate) {
    /// tokio::select! {
    ///     term = candidate.elected() => println!("leads in term {term}"),
    ///     _ = candidate.ended() => println!("will not lead any more"),
    /// }
    /// # }
    /// ```
    pub async fn elected(&self) -> Term {
        self.leadership.elected().await
    }

    /// Waits until the election has ended, and returns how the lease was left. Later calls return the same at once.
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`ErrElectionEnded`] when it has ended without being told to (rule S10), or was dropped. The lease then runs out.
    pub async fn ended(&self) -> Result<LeaseEnd, ErrElectionEnded> {
        self.profile.pulse.ended().await
    }

    /// The present state, then each change of it: gains, losses, new holders. A slow reader sees the newest state, not
    /// each one. Renewals are no changes. It ends when the election does. `next` is cancel-safe.
    pub fn changes(&self) -> impl Stream<Item = LeadershipState> + Send + Unpin + use<> {
        let next = |mut changes: Changes| async move { Some((changes.next().await?, changes)) };
        stream::unfold(self.leadership.changes(), next).fuse().boxed()
    }

    /// One item for each gain of leadership: at once if this process may write already, then for each later term in which
    /// it may. A slow reader gets one item for several gains, and none for a term that is over when it looks. The gate has
    /// opened when an item comes, so whatever was refused before can be done again then.
    ///
    /// It fits `Controller::reconcile_all_on` of kube-runtime. It ends when the election does, since then no gain
    /// comes any more: it keeps no controller alive, and a controller goes on without it. `next` is cancel-safe.
    ///
    /// ```no_run
    /// use futures_util::StreamExt;
    ///
    /// # async fn example(candidate: kube_leader_gate::Candidate) {
    /// let mut gains = candidate.gains();
    /// while gains.next().await.is_some() {
    ///     println!("everything that was left alone is due now");
    /// }
    /// # }
    /// ```
    pub fn gains(&self) -> impl Stream<Item = ()> + Send + Unpin + use<> {
        let next = |mut terms: Terms| async move { terms.next().await.map(|_| ((), terms)) };
        stream::unfold(self.leadership.terms(), next).fuse().boxed()
    }

    /// Whether the election is healthy, for a liveness probe: it has not ended, and if this process holds the lease it was
    /// renewed within the lease duration plus `max_tolerable_expired`.
    ///
    /// As client-go's check: a follower is healthy, and so is a leader that has lost the lease.
    ///
    /// # Errors
    /// [`ErrUnhealthy`] says what is wrong. Restarting the process mends both.
    pub fn check(&self, max_tolerable_expired: Duration) -> Result<(), ErrUnhealthy> {
        let Profile { timing, pulse, .. } = &*self.profile;
        if pulse.has_ended() {
            return Err(ErrUnhealthy::Ended);
        }
        let tolerated = timing.lease_duration().saturating_add(max_tolerable_expired);
        let since = self.leadership.now().saturating_since(pulse.renewed());
        if pulse.holds() && since > tolerated {
            return Err(ErrUnhealthy::NotRenewed { since, tolerated });
        }
        Ok(())
    }
}

// === impl ErrUnhealthy ===

impl fmt::Display for ErrUnhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str(ENDED),
            Self::NotRenewed { since, tolerated } => write!(
                f,
                "the lease is held by this process and was last renewed {since:?} ago, tolerated: {tolerated:?}"
            ),
        }
    }
}

impl Error for ErrUnhealthy {}
