//! The handle to ask about an election.

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

/// Shows the election as this process's own candidate sees it. Clones are cheap and may outlive the election.
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
/// Each answer is true at this instant and respects the deadline: a process that was frozen past its deadline does
/// not lead when it wakes.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub(crate) leadership: Leadership,
    profile: Arc<Profile>,
}

/// What all handles of one candidate share: its constant properties, and its pulse.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) lease: LeaseName,
    pub(super) identity: Identity,
    pub(super) timing: LeaseTiming,
    pub(super) pulse: Arc<Pulse>,
    pub(super) hooks: Hooks,
}

/// Why an election is unhealthy; see [`Candidate::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrUnhealthy {
    /// The election has ended: this process will never lead again.
    Ended,
    /// This process holds the lease, but has not renewed it within the tolerated time.
    NotRenewed {
        /// The time since the last successful renewal was sent.
        since: Duration,
        /// The tolerated time.
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

    /// Whether the gate would admit a write now. False for a follower, and for a leader that finishes its writes to
    /// stop.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.leadership.can_write()
    }

    /// The last known holder of the lease.
    #[must_use]
    pub fn holder(&self) -> Option<Arc<str>> {
        self.leadership.holder()
    }

    /// Why the election makes no progress, in words for a person: lease calls fail, the fence lets no write pass, or the
    /// lease makes no sense. It
    /// also says what to do. None if all is well. The log says the same.
    ///
    /// If the API server refuses a watch, this is not trouble: the election polls the lease then.
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

    /// The lease that this candidate contends for.
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        &self.profile.lease
    }

    /// The election's times.
    #[must_use]
    pub fn timing(&self) -> LeaseTiming {
        self.profile.timing
    }

    /// The present state, as observers see it.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        self.leadership.state()
    }

    /// How long this process may still write without another renewal. None for a follower.
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
    /// It also waits while the election stands down. Once the election has [`ended`](Self::ended), it never returns,
    /// since this process cannot write again. [`Election::run`](super::Election::run) drops its workload then. In a
    /// task of your own, wait for both:
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

    /// Waits until the election has ended, and returns how it left the lease. Later calls return the same value at
    /// once. Cancel-safe.
    ///
    /// # Errors
    /// [`ErrElectionEnded`] if the election was dropped, or ended without an order to stop
    /// ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). The lease then expires.
    pub async fn ended(&self) -> Result<LeaseEnd, ErrElectionEnded> {
        self.profile.pulse.ended().await
    }

    /// Yields the present state, then each change: gains, losses, new holders. A slow reader may skip states in
    /// between. A renewal is not a change. The stream ends when the election does. `next` is cancel-safe.
    pub fn changes(&self) -> impl Stream<Item = LeadershipState> + Send + Unpin + use<> {
        let next = |mut changes: Changes| async move { Some((changes.next().await?, changes)) };
        stream::unfold(self.leadership.changes(), next).fuse().boxed()
    }

    /// Yields one item for each gain of leadership: at once if this process may write already, then for each later
    /// term. A slow reader gets one item for several gains, and none for a term that has ended already. The gate is
    /// open when an item comes, so the reader can repeat writes that the gate refused before.
    ///
    /// Give it to `Controller::reconcile_all_on` of kube-runtime. It ends when the election does, since there are no
    /// gains after that. It does not keep a controller alive, and a controller continues without it. `next` is
    /// cancel-safe.
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

    /// Whether the election is healthy, for a liveness probe. It is if it has not ended, and if this process has
    /// renewed a lease that it holds within the lease duration plus `max_tolerable_expired`.
    ///
    /// This is client-go's check: a follower is healthy, and so is a leader that has lost the lease.
    ///
    /// # Errors
    /// [`ErrUnhealthy`] says what is wrong. In both cases, restarting the process helps.
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
                "this process holds the lease and last renewed it {since:?} ago, tolerated: {tolerated:?}"
            ),
        }
    }
}

impl Error for ErrUnhealthy {}
