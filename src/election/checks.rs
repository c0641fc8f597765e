//! Whether an election is alive, and whether it is ready: what probes ask.

use super::candidate::{Candidate, Profile};
use crate::{
    leadership::{ENDED, NOT_BEGUN, Stage},
    lease::LeaseName,
};
use std::{error::Error, fmt, sync::Arc, time::Duration};

/// Why an election is unhealthy; see [`Candidate::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrUnhealthy {
    /// The election has ended: this process will never lead again.
    Ended,
    /// The program has built the election, and does not drive it within the tolerated time.
    NotBegun {
        /// The time since the election was built.
        since: Duration,
        /// The tolerated time.
        tolerated: Duration,
    },
    /// This process holds the lease, but has not renewed it within the tolerated time.
    NotRenewed {
        /// The time since the last successful renewal was sent.
        since: Duration,
        /// The tolerated time.
        tolerated: Duration,
    },
}

/// Why an election is not ready; see [`Candidate::check_ready`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrNotReady {
    /// The election has ended: this process will never lead again.
    Ended,
    /// The program has built the election, and does not drive it.
    NotBegun,
    /// The election makes no progress. This is [`Candidate::trouble`].
    InTrouble(Arc<str>),
    /// The election has begun a moment ago, and has not seen this lease yet.
    NotSeen(LeaseName),
}

// === impl Candidate ===

impl Candidate {
    /// Whether the election is healthy, for a liveness probe. The tolerated time is the lease duration plus
    /// `max_tolerable_expired`. The election is unhealthy in three cases:
    ///
    /// - It has ended.
    /// - The program has built it, and has not driven it within the tolerated time.
    /// - This process holds the lease, and has not renewed it within the tolerated time.
    ///
    /// The last is client-go's check: a follower is healthy, and so is a leader that has lost the lease.
    ///
    /// # Errors
    /// [`ErrUnhealthy`] says what is wrong. A restart of the process mends an election that has ended or is stuck. It
    /// does not mend a program that never drives its election, but an operator of the cluster sees the restarts.
    pub fn check(&self, max_tolerable_expired: Duration) -> Result<(), ErrUnhealthy> {
        let Profile { timing, pulse, .. } = &*self.profile;
        if pulse.has_ended() {
            return Err(ErrUnhealthy::Ended);
        }
        let tolerated = timing.lease_duration().saturating_add(max_tolerable_expired);
        let now = self.leadership.now();
        let since = now.saturating_since(pulse.built());
        if self.leadership.stage() == Stage::NotBegun && since > tolerated {
            return Err(ErrUnhealthy::NotBegun { since, tolerated });
        }
        let since = now.saturating_since(pulse.renewed());
        if pulse.holds() && since > tolerated {
            return Err(ErrUnhealthy::NotRenewed { since, tolerated });
        }
        Ok(())
    }

    /// Whether the election is ready, for a readiness probe. It is if it runs, has seen the lease, and is not in
    /// [trouble](Self::trouble) now. This does not depend on leading: a follower is ready too.
    ///
    /// So a replica that may not use the lease never becomes ready, and a rollout waits for it. A replica that loses
    /// the API server is not ready until a lease call succeeds again. The
    /// [rollout guide](crate::guide::rollout#readiness) says what follows from that.
    ///
    /// This knows only what the lease calls have shown. A follower need not write, so a follower without the permission
    /// to write is ready.
    ///
    /// # Errors
    /// [`ErrNotReady`] says what is wrong.
    pub fn check_ready(&self) -> Result<(), ErrNotReady> {
        let Profile { lease, pulse, .. } = &*self.profile;
        if pulse.has_ended() {
            return Err(ErrNotReady::Ended);
        }
        if self.leadership.stage() == Stage::NotBegun {
            return Err(ErrNotReady::NotBegun);
        }
        if let Some(trouble) = self.trouble() {
            return Err(ErrNotReady::InTrouble(trouble));
        }
        if pulse.has_seen() { Ok(()) } else { Err(ErrNotReady::NotSeen(lease.clone())) }
    }
}

// === impl ErrUnhealthy ===

impl fmt::Display for ErrUnhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str(ENDED),
            Self::NotBegun { since, tolerated } => {
                write!(f, "{NOT_BEGUN}; it was built {since:?} ago, tolerated: {tolerated:?}")
            }
            Self::NotRenewed { since, tolerated } => write!(
                f,
                "this process holds the lease and last renewed it {since:?} ago, tolerated: {tolerated:?}"
            ),
        }
    }
}

impl Error for ErrUnhealthy {}

// === impl ErrNotReady ===

impl fmt::Display for ErrNotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str(ENDED),
            Self::NotBegun => f.write_str(NOT_BEGUN),
            Self::InTrouble(trouble) => write!(f, "the election is in trouble: {trouble}"),
            Self::NotSeen(lease) => write!(f, "the election has not seen the lease {lease} yet"),
        }
    }
}

impl Error for ErrNotReady {}
