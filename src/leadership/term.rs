//! What a stretch of leadership is called, and how it can end.

use std::{fmt, sync::Arc};

/// One unbroken stretch of holding a lease, named by the lease's uid and its count of transitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    lease_uid: Arc<str>,
    transitions: u64,
}

/// Why leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// It was given up in good order.
    Released,
    /// The validity deadline passed without a renewal (rule S1).
    Expired,
    /// Another holder stands in the lease (rule S7).
    Taken,
    /// The lease was deleted (rule S8).
    Deleted,
    /// The elector ended without giving the lease up (a panic, a dropped task: rule S10), or could not give it up in good
    /// order.
    Abandoned,
}

/// What observers see of leadership; it changes when leadership or the known holder does, not with each renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeadershipState {
    /// The term in which this process leads; none for a follower.
    ///
    /// Between the deadline and the moment at which [`Grantor::watch_deadline`](super::Grantor::watch_deadline) notices it,
    /// this still names the expired term. [`Leadership::term`](super::Leadership::term) judges by the deadline.
    pub term: Option<Term>,
    /// True while a leader finishes its admitted writes and takes no new ones.
    pub closing: bool,
    /// The last known holder of the lease.
    pub holder: Option<Arc<str>>,
    /// How the last term of this process ended, if one has.
    pub lost: Option<Loss>,
}

// === impl Term ===

impl Term {
    /// The term of the lease object `lease_uid` after `transitions` changes of its holder.
    #[must_use]
    pub fn new(lease_uid: impl Into<Arc<str>>, transitions: u64) -> Self {
        Self { lease_uid: lease_uid.into(), transitions }
    }

    /// The uid of the lease object; a lease that was deleted and made again has another.
    #[must_use]
    pub fn lease_uid(&self) -> &str {
        &self.lease_uid
    }

    /// How often the lease had changed hands when the term began.
    #[must_use]
    pub const fn transitions(&self) -> u64 {
        self.transitions
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.lease_uid, self.transitions)
    }
}

// === impl Loss ===

impl Loss {
    /// The word for it in log fields.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Taken => "taken",
            Self::Deleted => "deleted",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Released => "it was released",
            Self::Expired => "it was not renewed before the deadline",
            Self::Taken => "another candidate holds the lease",
            Self::Deleted => "the lease was deleted",
            Self::Abandoned => "the election ended, or stood down before the writes had finished",
        })
    }
}
