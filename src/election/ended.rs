//! The ways in which an election ends.

use std::{error::Error, fmt};

/// The result of an election that stopped in order: what its work returned, and how it left the lease.
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
    /// What the work returned.
    pub output: T,
    /// How the election left the lease.
    pub lease: LeaseEnd,
}

/// How an election left the lease, at its end or when it stood down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseEnd {
    /// This process does not hold the lease. Either it has released the lease, or it did not hold the lease when it
    /// stopped, or another candidate has taken the lease.
    Released,
    /// The lease expires by itself. There are four possible reasons:
    ///
    /// - a write ended without an answer, and could still take effect until the lease's end;
    /// - the election could not reach the API server;
    /// - this candidate had just taken the lease, for example by its [priority](super::Priority), and the former holder may
    ///   still write;
    /// - the API server has stored something else than the release, for example because a webhook changed it, so the
    ///   other candidates wait.
    LeftToExpire,
}

/// The election ended without an order to stop: the program has dropped it, its runtime shuts down, or its task has
/// panicked, which is a bug.
///
/// The gate is closed for good, and has cut off the admitted writes
/// ([`ErrLeadershipLost`](crate::ErrLeadershipLost)). The lease was not released, and expires by itself.
///
/// An election cannot begin again: end the process with this error, so that it is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrElectionEnded(pub(super) ());

// === impl Finished ===

impl<T> Finished<T> {
    pub(super) const fn new(output: T, lease: LeaseEnd) -> Self {
        Self { output, lease }
    }

    /// Returns what the work returned, if you do not need to know how the election left the lease.
    pub fn into_output(self) -> T {
        self.output
    }
}

// === impl ErrElectionEnded ===

impl fmt::Display for ErrElectionEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the leader election ended without an order to stop; writes are rejected until the process is restarted",
        )
    }
}

impl Error for ErrElectionEnded {}
