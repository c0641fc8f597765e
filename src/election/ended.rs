//! How an election comes to its end.

use std::{error::Error, fmt};

/// An election that has stopped in order: what its work has returned, and how the lease was left.
///
/// ```no_run
/// # async fn example(election: kube_leader_gate::Election) -> Result<(), Box<dyn std::error::Error>> {
/// # async fn controllers() -> Result<(), std::io::Error> { Ok(()) }
/// let finished = election.run(controllers()).await?;
/// println!("the lease: {:?}", finished.lease);
/// finished.output?; // the error of the controllers, if they failed
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the work's own result, an error perhaps, is the `output`"]
#[non_exhaustive]
pub struct Finished<T> {
    /// What the work has returned.
    pub output: T,
    /// How the lease was left.
    pub lease: LeaseEnd,
}

/// How an election has left the lease: at its end, or to stand down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseEnd {
    /// The lease is free, or another candidate holds it.
    Released,
    /// The lease runs out by itself. A write that ended without an answer could have landed for as long as the lease lasts,
    /// the API server could not be told, or a holder from which this candidate had just taken the lease by its
    /// [priority](super::Priority) may still be writing.
    LeftToExpire,
}

/// The election's task has ended without being told to: a bug, or a runtime that shuts down. The gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrElectionEnded(pub(super) ());

// === impl Finished ===

impl<T> Finished<T> {
    pub(super) const fn new(output: T, lease: LeaseEnd) -> Self {
        Self { output, lease }
    }

    /// What the work has returned, for a caller to which it does not matter how the lease was left.
    pub fn into_output(self) -> T {
        self.output
    }
}

// === impl ErrElectionEnded ===

impl fmt::Display for ErrElectionEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the leader election has ended unasked; writes are rejected until the process is restarted",
        )
    }
}

impl Error for ErrElectionEnded {}
