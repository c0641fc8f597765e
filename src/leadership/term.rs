//! The name of a term, and the ways in which a term ends.

use std::{fmt, sync::Arc};

/// One period in which a candidate holds the lease without a break. The uid of the lease and its count of transitions
/// name it. `==` also compares the fencing tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    lease_uid: Arc<str>,
    transitions: u64,
    fencing_token: Option<u64>,
}

/// Why leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The leader released the lease in good order.
    Released,
    /// The validity deadline passed without a renewal ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)).
    Expired,
    /// The lease names another holder ([rule S7](crate::guide::guarantees#s7-another-holder-closes-the-gate)).
    Taken,
    /// The lease was deleted ([rule S8](crate::guide::guarantees#s8-a-deleted-lease-closes-the-gate)).
    Deleted,
    /// The elector ended without a release (it panicked, or its task was dropped:
    /// [rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)), or it could not release in good order.
    Abandoned,
}

/// The state of leadership that observers see. It changes with the leadership or the known holder, but not with each
/// renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeadershipState {
    /// The term in which this process leads. None for a follower.
    ///
    /// After the deadline, this still names the expired term until
    /// [`Grantor::watch_deadline`](super::Grantor::watch_deadline) notices it.
    /// [`Leadership::term`](super::Leadership::term) compares with the deadline instead.
    pub term: Option<Term>,
    /// True while a leader finishes its admitted writes and takes no new ones.
    pub closing: bool,
    /// The term whose gate has not opened yet, although this process holds the lease: what
    /// [`open_when`](crate::Election::open_when) names has not come yet.
    pub opening: Option<Term>,
    /// The last known holder of the lease.
    pub holder: Option<Arc<str>>,
    /// How the last term of this process ended. None if no term has ended.
    pub lost: Option<Loss>,
}

// === impl Term ===

impl Term {
    /// The term in which the lease object `lease_uid` has had `transitions` changes of its holder.
    #[must_use]
    pub fn new(lease_uid: impl Into<Arc<str>>, transitions: u64) -> Self {
        Self { lease_uid: lease_uid.into(), transitions, fencing_token: None }
    }

    /// The same term with a fencing token: see [`fencing_token`](Self::fencing_token) for what it must be.
    #[must_use]
    pub fn with_fencing_token(self, token: u64) -> Self {
        Self { fencing_token: Some(token), ..self }
    }

    /// A number that is larger than the token of every earlier term of the same lease. This is true for the terms of all
    /// candidates, also if the lease was deleted and created again in between. It does not change within the term.
    ///
    /// Send it along with each write to a store outside Kubernetes that can compare: the store keeps the largest token
    /// that it has seen, and refuses a smaller one. [The guide](crate::guide::fencing_tokens) says how.
    ///
    /// The election takes the `resourceVersion` of a write by which this candidate held the lease. None if that version
    /// is not a number that fits into a `u64`, or if this candidate has seen a larger version of the lease before. If you
    /// wrote your own elector, this is the number that it gave to [`with_fencing_token`](Self::with_fencing_token), if any.
    #[must_use]
    pub const fn fencing_token(&self) -> Option<u64> {
        self.fencing_token
    }

    /// The uid of the lease object. If a lease is deleted and created again, its uid is new.
    #[must_use]
    pub fn lease_uid(&self) -> &str {
        &self.lease_uid
    }

    /// Whether this is the same term, whatever the fencing tokens are.
    #[cfg(feature = "election")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.lease_uid, self.transitions) == (&other.lease_uid, other.transitions)
    }

    /// How often the lease had changed its holder when the term began.
    #[must_use]
    pub const fn transitions(&self) -> u64 {
        self.transitions
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.lease_uid.escape_debug(), self.transitions)
    }
}

// === impl Loss ===

impl Loss {
    /// The word for this loss in log fields.
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
            Self::Taken => "another candidate has taken the lease, or a user has edited it",
            Self::Deleted => "the lease was deleted",
            Self::Abandoned => "the election ended, or stood down before the writes had finished",
        })
    }
}
