//! The observers of single writes and lease calls. Observers of the election's state attend instead.

use crate::{gate::WriteObserver, leadership::Moment, lease::ErrLockKind};
use std::{fmt, sync::Arc, time::Duration};

/// The observers of an election; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// Called for writes, by every gate of the election.
    pub(crate) writes: Option<Arc<dyn WriteObserver>>,
    /// Called for lease calls, by the elector.
    pub(crate) lease: Option<Arc<dyn LeaseHook>>,
}

/// Sees what an elector does. The elector's own task calls it: it must not block.
pub(crate) trait LeaseHook: fmt::Debug + Send + Sync {
    /// A lease call has ended after this time, answered or not.
    fn called(&self, call: LeaseCall, took: Duration, outcome: Result<(), ErrLockKind>);

    /// Whether, as far as this candidate knows, the lease has no holder at this moment: it is free, or has run out.
    fn vacant(&self, vacant: bool, now: Moment);
}

/// What a lease call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseCall {
    Read,
    Acquire,
    Renew,
    Release,
    /// Says in the lease, for the candidate that preempted this one, that the last write has ended.
    Acknowledge,
}

impl LeaseCall {
    /// The word for it in log fields.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Acknowledge => "acknowledge",
        }
    }
}
