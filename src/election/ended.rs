//! How an election comes to its end.

use std::{error::Error, fmt};

/// How an election gave up what it held: at its end, or to stand down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// The lease is free, or belongs to somebody else.
    Released,
    /// The lease runs out by itself. A write that ended without an answer could have landed for as long as the lease lasts,
    /// the API server could not be told, or a holder from which this candidate had just taken the lease by its
    /// [priority](super::Priority) may still be writing.
    LeftToExpire,
}

/// The election's task has ended without being told to: a bug, or a runtime that shuts down. The gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrElectionEnded(pub(super) ());

// === impl ErrElectionEnded ===

impl fmt::Display for ErrElectionEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the leader election has ended unasked; writes are rejected until the process is restarted",
        )
    }
}

impl Error for ErrElectionEnded {}
