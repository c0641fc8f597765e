//! What this process wants of its election. The gate and the election both read this one value.
//!
//! | | a term may begin | the lease may be claimed | the lease is renewed | the lease is released |
//! | --- | --- | --- | --- | --- |
//! | [`Intent::NotBegun`] | no | no | no | no |
//! | [`Intent::Contend`] | yes | yes | in a term | if the term is given back |
//! | [`Intent::Keep`] | no | no | in a term | no: the work of the term needs the lease |
//! | [`Intent::Leave`] | no | no | no | yes |
//! | [`Intent::Left`] | no | no | no | if a claim is answered late |
//! | [`Intent::Gone`] | no | no | no | no |

/// What this process wants of its election.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// The election is built, and the program does not drive it yet.
    NotBegun,
    /// Acquire the lease, and keep it. A [`Grantor`](super::Grantor) without an election wants nothing else.
    #[default]
    Contend,
    /// Let no other term begin: the work of the present term has not ended (rule S11), or this process stops, and the
    /// writes of the term finish first.
    Keep,
    /// Release the lease: the gate is closed, and the admitted writes have ended (rule S4).
    Leave,
    /// The election has left the lease: it has released the lease, or another candidate holds the lease, or the lease is
    /// left to expire. No term begins until this process contends again.
    Left {
        /// Whether this process no longer holds the lease: it has released the lease, or another candidate has taken it.
        released: bool,
    },
    /// The [`Grantor`](super::Grantor) is gone. Nothing follows.
    Gone,
}

impl Intent {
    /// Whether this process wants to leave the lease, or has left it.
    #[must_use]
    pub const fn is_to_leave(self) -> bool {
        matches!(self, Self::Leave | Self::Left { .. })
    }
}
