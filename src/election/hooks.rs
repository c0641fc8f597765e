//! What other modules put into an election: observers of single writes and lease calls, and what must agree before the
//! gate opens. Observers of the election's state use `attendants`.

use crate::{
    gate::WriteObserver,
    leadership::{Moment, Term},
    lease::{ErrLockKind, Identity, LeaseName},
    policy::Policy,
    refusal::RefusalLayer,
};
use futures_util::future::BoxFuture;
use std::{error::Error, fmt, sync::Arc, time::Duration};

/// The observers of an election. Default: none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// Every gate of the election reports its writes to this.
    pub(crate) writes: Option<Arc<dyn WriteObserver>>,
    /// The elector reports its lease calls to this.
    pub(crate) lease: Option<Arc<dyn LeaseHook>>,
    /// The API server's fence, if there is one.
    pub(crate) fenced: Option<Fenced>,
}

/// What an election needs of a fence.
#[derive(Clone, Debug)]
pub(crate) struct Fenced {
    /// The elector asks it before the gate opens.
    pub(crate) opening: Arc<dyn Opening>,
    /// Clients of the election recognise the fence's refusals with it.
    pub(crate) refusals: RefusalLayer,
}

/// Makes a fence once the rest of the settings is known.
pub(crate) type MakeFence = Box<
    dyn FnOnce(&LeaseName, &Identity, &Policy) -> Result<Fenced, Box<dyn Error + Send + Sync>> + Send + Sync,
>;

/// Asks the API server whether the gate may open. The elector asks again after a pause until it may.
pub(crate) trait Opening: fmt::Debug + Send + Sync {
    /// Whether the API server lets this process write in `term`.
    fn ask<'a>(&'a self, term: &'a Term) -> BoxFuture<'a, Result<(), Obstacle>>;
}

/// Why the gate may not open.
#[derive(Clone, Debug)]
pub(crate) struct Obstacle {
    /// The word for it in log fields.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// Whether this is usual for some milliseconds after a gain, until the API server has heard of the term.
    pub(crate) passes: bool,
}

/// Receives what an elector does. The elector calls it in its own task, so it must not block.
pub(crate) trait LeaseHook: fmt::Debug + Send + Sync {
    /// A lease call ended after this time, with or without an answer.
    fn called(&self, call: LeaseCall, took: Duration, outcome: Result<(), ErrLockKind>);

    /// Whether the lease has no holder now, as far as this candidate knows: it is free or has expired.
    fn vacant(&self, vacant: bool, now: Moment);
}

/// The purpose of a lease call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseCall {
    Read,
    Acquire,
    Renew,
    Release,
    /// Tells the candidate that preempted this one, through the lease, that the last write has ended.
    Acknowledge,
    /// Writes this follower into the lease as a standby.
    Join,
    /// Takes this follower out of the standbys, because it stops or stands down.
    Leave,
}

impl LeaseCall {
    /// The word for this call in log fields.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Acknowledge => "acknowledge",
            Self::Join => "join",
            Self::Leave => "leave",
        }
    }
}
