//! Observers of single writes and lease calls. The module `observers` has the observers of the election's state.

use crate::{gate::WriteObserver, leadership::Moment, lease::ErrLockKind};
use std::{fmt, sync::Arc, time::Duration};

/// The observers of an election. Default: none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// Every gate of the election reports its writes to this.
    pub(crate) writes: Option<Arc<dyn WriteObserver>>,
    /// The elector reports its lease calls to this.
    pub(crate) lease: Option<Arc<dyn LeaseHook>>,
}

/// Receives what an elector does. The elector calls it in its own task, so it must not block.
pub(crate) trait LeaseHook: fmt::Debug + Send + Sync {
    /// A lease call took so long, and ended with or without an answer.
    fn called(&self, call: LeaseCall, took: Duration, outcome: Result<(), ErrLockKind>);

    /// Whether the lease has no holder now, as far as this candidate knows: it is free or has expired.
    fn vacant(&self, vacant: bool, now: Moment);
}

/// The purpose of a lease call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseCall {
    Read,
    Acquire,
    Renew,
    Release,
    /// Asks the holder, through the lease, to release it.
    Ask,
}

impl LeaseCall {
    /// The word for this call in log fields.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Ask => "ask",
        }
    }
}
