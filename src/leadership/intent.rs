//! What this process wants of its election: one word, which the gate and the election both read.
//!
//! | | a term may begin | the lease may be claimed | is renewed | is released |
//! | --- | --- | --- | --- | --- |
//! | [`Intent::NotBegun`] | no | no | no | no |
//! | [`Intent::Contend`] | yes | yes | in a term | if the term is given back |
//! | [`Intent::Keep`] | no | no | in a term | no: the work of the term keeps it |
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
    /// Let no other term begin: the work of the present one has not ended (rule S11), or its writes finish for a stop.
    Keep,
    /// Release the lease: the gate is closed, and the admitted writes have ended (rule S4).
    Leave,
    /// It has been left: it is released or another's, or else it is left to expire. Nothing follows until this process contends
    /// again.
    Left {
        /// Whether this process does not hold it any more.
        released: bool,
    },
    /// The [`Grantor`](super::Grantor) is gone. Nothing follows.
    Gone,
}

impl Intent {
    /// Whether the lease is to be left, or has been.
    #[must_use]
    pub const fn is_to_leave(self) -> bool {
        matches!(self, Self::Leave | Self::Left { .. })
    }
}
