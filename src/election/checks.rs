//! Whether an election is alive, and whether it is ready: what probes ask.

use super::candidate::{Candidate, Profile};
use crate::{
    leadership::{ENDED, NOT_BEGUN, Stage},
    lease::LeaseName,
};
use std::{
    error::Error,
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// What is wrong with an election; see [`Candidate::check`] and [`Candidate::check_ready`].
///
/// A check changes nothing, so you may call it at any time. The gate does not depend on a check: a leader in trouble
/// continues to write until its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrUnhealthy {
    /// The election has ended: this process will never lead again. Restart it.
    Ended,
    /// The program has built the election, but has not started it. Await
    /// [`Election::run_until`](super::Election::run_until), for example.
    NotBegun,
    /// The election's task does not run any more: the runtime or the [lock](crate::lease::Lock) blocks it. Restart the
    /// process, and look for a call that blocks a thread.
    Stuck {
        /// The time since it last ran.
        since: Duration,
        /// The tolerated time.
        tolerated: Duration,
    },
    /// For more than a lease duration, the API server has answered 401 to each request of the clients that
    /// [`Election::client`](super::Election::client) or [`wrap`](super::Election::wrap) made. kube never reads some
    /// credentials again ([which ones](crate::guide::production#credentials-that-change)), so restart the process.
    Unauthorized {
        /// The time from the first to the last of these answers.
        since: Duration,
    },
    /// The election makes no progress. This is [`Candidate::trouble`], which says what to do.
    InTrouble(Arc<str>),
    /// The election has begun a moment ago, and has not seen this lease yet. Wait.
    NotSeen(LeaseName),
}

// === impl Candidate ===

impl Candidate {
    /// Whether the election is alive, for a liveness probe. The check fails if the election has ended. It fails if the
    /// election's task has not run for longer than the lease duration plus `max_tolerable_expired`, although a healthy
    /// task runs at least once in each retry period. Before the start, this time counts from the moment at which the
    /// program built the election. And the check fails if the API server has answered 401 to each request of the
    /// workload's clients for more than a lease duration.
    ///
    /// An outage of the API server does not make this check fail, neither on a leader nor on a follower, because a
    /// restart does not mend an outage. [`check_ready`](Self::check_ready) reports it. client-go's check fails in an
    /// outage, because a leader of client-go ends its process when it loses the lease.
    ///
    /// # Errors
    /// [`ErrUnhealthy`] says what is wrong. A restart of the process mends an election that has ended or is stuck. It
    /// does not mend a program that never drives its election, but an operator of the cluster sees the restarts.
    pub fn check(&self, max_tolerable_expired: Duration) -> Result<(), ErrUnhealthy> {
        let Profile { timing, liveness, .. } = &*self.profile;
        if liveness.has_ended() {
            return Err(ErrUnhealthy::Ended);
        }
        let tolerated = timing.lease_duration().saturating_add(max_tolerable_expired);
        let now = self.leadership().now();
        let since = now.saturating_since(liveness.last_ran());
        if since <= tolerated {
            let since = liveness.unknown_for();
            let is_known = since <= timing.lease_duration();
            return if is_known { Ok(()) } else { Err(ErrUnhealthy::Unauthorized { since }) };
        }
        let has_begun = self.leadership().stage() != Stage::NotBegun;
        Err(if has_begun { ErrUnhealthy::Stuck { since, tolerated } } else { ErrUnhealthy::NotBegun })
    }

    /// Whether the election is ready, for a readiness probe. An election is ready if it runs, has seen the lease, and
    /// is not in [trouble](Self::trouble) now. Readiness does not depend on leading: a follower is ready too.
    ///
    /// So a replica without the permission to use the lease never becomes ready, and a rollout waits for this replica.
    /// After a failed lease call, a replica is not ready. It becomes ready again with its next news of the lease: the
    /// leader with a renewal, a follower with what it reads or what its watch shows. A follower does not need to write,
    /// so a follower without the permission to write is ready. The [guide](crate::guide::production#readiness) says
    /// what follows from that.
    ///
    /// # Errors
    /// [`ErrUnhealthy`] says what is wrong.
    pub fn check_ready(&self) -> Result<(), ErrUnhealthy> {
        let Profile { lease, liveness, .. } = &*self.profile;
        if liveness.has_ended() {
            return Err(ErrUnhealthy::Ended);
        }
        if self.leadership().stage() == Stage::NotBegun {
            return Err(ErrUnhealthy::NotBegun);
        }
        if let Some(trouble) = self.trouble() {
            return Err(ErrUnhealthy::InTrouble(trouble));
        }
        if liveness.seen.load(Ordering::Acquire) { Ok(()) } else { Err(ErrUnhealthy::NotSeen(lease.clone())) }
    }
}

// === impl ErrUnhealthy ===

impl fmt::Display for ErrUnhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str(ENDED),
            Self::NotBegun => f.write_str(NOT_BEGUN),
            Self::Stuck { since, tolerated } => write!(
                f,
                "the task of the election has not run for {since:?}, tolerated: {tolerated:?}; restart the process"
            ),
            Self::Unauthorized { since } => write!(
                f,
                "the API server has answered 401 to each request of this process for {since:?}; restart the process, so that \
                 it reads its credentials anew"
            ),
            Self::InTrouble(trouble) => write!(f, "the election is in trouble: {trouble}"),
            Self::NotSeen(lease) => write!(f, "the election has not seen the lease {lease} yet"),
        }
    }
}

impl Error for ErrUnhealthy {}
