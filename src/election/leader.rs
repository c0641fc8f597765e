//! The handle to ask who leads.

use super::pulse::Pulse;
use crate::{
    leadership::{Leadership, LeadershipState, Term},
    lease::{Identity, LeaseName, LeaseTiming},
};
use futures_util::{Stream, StreamExt, stream};
use std::{error::Error, fmt, sync::Arc, time::Duration};

/// A view of an election; clones are cheap and may outlive it.
///
/// All answers are of this instant, judged by the deadline: a process that was frozen past it does not lead when it wakes.
#[derive(Clone, Debug)]
pub struct Leader {
    leadership: Leadership,
    candidate: Arc<Candidate>,
}

/// What does not change about a candidate, and its pulse.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) lease: LeaseName,
    pub(super) identity: Identity,
    pub(super) timing: LeaseTiming,
    pub(super) pulse: Arc<Pulse>,
}

/// Why an election is not healthy; see [`Leader::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unhealthy {
    /// The election has ended: this process will never lead again.
    Ended,
    /// The lease stands in this candidate's name, and has not been renewed for longer than is tolerated.
    NotRenewed {
        /// How long ago the last successful renewal was sent.
        since: Duration,
        /// How long was tolerated.
        tolerated: Duration,
    },
}

// === impl Leader ===

impl Leader {
    pub(super) fn new(leadership: Leadership, candidate: Arc<Candidate>) -> Self {
        Self { leadership, candidate }
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

    /// Whoever holds the lease, as far as this process knows.
    #[must_use]
    pub fn holder(&self) -> Option<Arc<str>> {
        self.leadership.holder()
    }

    /// The term in which this process leads.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        self.leadership.term()
    }

    /// The name under which this candidate contends.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.candidate.identity
    }

    /// The lease that it contends for.
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        &self.candidate.lease
    }

    /// The leadership word itself, for a gate with a policy of its own, say.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Waits until this process may write, and returns the term. Waits for ever when the election has ended.
    /// Cancel-safe.
    pub async fn elected(&self) -> Term {
        self.leadership.elected().await
    }

    /// The present state, then each change of it: gains, losses, new holders. A slow reader sees the newest state, not
    /// each one. Renewals are no changes. `next` is cancel-safe.
    pub fn changes(&self) -> impl Stream<Item = LeadershipState> + Send + Unpin + use<> {
        let state = self.leadership.subscribe();
        stream::unfold((state, true), |(mut state, first)| async move {
            if !first && state.changed().await.is_err() {
                return None;
            }
            let seen = state.borrow_and_update().clone();
            Some((seen, (state, false)))
        })
        .boxed()
    }

    /// Whether the election is healthy, for a liveness probe: it runs, and if the lease stands in this candidate's name
    /// it was renewed within the lease duration plus `max_tolerable_expired`.
    ///
    /// As client-go's check: a follower is healthy, and so is a leader that has lost the lease.
    ///
    /// # Errors
    /// [`Unhealthy`] says what is wrong. Restarting the process mends both.
    pub fn check(&self, max_tolerable_expired: Duration) -> Result<(), Unhealthy> {
        let Candidate { identity, timing, pulse, .. } = &*self.candidate;
        if pulse.has_ended() {
            return Err(Unhealthy::Ended);
        }
        let tolerated = timing.lease_duration().saturating_add(max_tolerable_expired);
        let since = self.leadership.now().saturating_since(pulse.renewed());
        if self.holder().as_deref() == Some(identity.as_str()) && since > tolerated {
            return Err(Unhealthy::NotRenewed { since, tolerated });
        }
        Ok(())
    }
}

// === impl Unhealthy ===

impl fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the leader election has ended; restart the process to contend again"),
            Self::NotRenewed { since, tolerated } => write!(
                f,
                "the lease is held in this candidate's name and was last renewed {since:?} ago, tolerated: {tolerated:?}"
            ),
        }
    }
}

impl Error for Unhealthy {}
