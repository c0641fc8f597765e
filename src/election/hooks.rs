//! What an election tells while it runs. Observers of its state need none of this: they attend.

use crate::{gate::WriteObserver, leadership::Moment, lease::ErrLockKind};
use std::{fmt, sync::Arc, time::Duration};

/// Who is told; nobody, unless somebody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// Of writes, by every gate of the election.
    pub(crate) writes: Option<Arc<dyn WriteObserver>>,
    /// Of the lease, by the elector.
    pub(crate) lease: Option<Arc<dyn LeaseHook>>,
}

/// Is told what an elector does. It is called from the elector's own task: it must not block.
pub(crate) trait LeaseHook: fmt::Debug + Send + Sync {
    /// A lease call has ended after this time, answered or not.
    fn called(&self, call: LeaseCall, took: Duration, outcome: Result<(), ErrLockKind>);

    /// Whether, as far as this candidate knows, the lease is nobody's at this moment: free, or run out.
    fn vacant(&self, vacant: bool, now: Moment);
}

/// What a lease call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseCall {
    Read,
    Acquire,
    Renew,
    Release,
    /// Tells the candidate that preempted this one that the last write has ended.
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
