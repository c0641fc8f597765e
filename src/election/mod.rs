//! The leader election: a task that contends for the lease until it is told to stop.
//!
//! ```
//! use kube_leader_gate::{Election, LeaseTiming};
//!
//! # use kube_leader_gate::testing::ApiServer;
//! # tokio_test::block_on(async {
//! # let server = ApiServer::new();
//! # let endpoint = server.serve().await?;
//! # let config = endpoint.config("replica-a");
//! let election = Election::builder("my-namespace", "my-controller")
//!     .timing(LeaseTiming::fast())
//!     .build(&config)?;
//! let client = election.client(&config)?; // writes only while this replica leads
//! let candidate = election.candidate(); // tells who leads
//!
//! let running = election.start(); // contends in tasks of its own, while you do something else
//! let term = candidate.elected().await;
//! println!("{} leads in term {term}", candidate.identity());
//! running.stop().await; // closes the gate, then releases the lease
//! assert!(!candidate.can_write());
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! A program builds an [`Election`], runs it, and asks its [`Candidate`] handle who leads. [`Election::run_until`] and
//! [`Election::run_while_leading`] run it around the work of the program. [`Election::start`] returns a [`Running`],
//! for a program that has no single future to run.
//!
//! The main rules are [S1: leading is a deadline](crate::guide::guarantees#s1-leading-is-a-deadline), [S4: a clean
//! stop has an order](crate::guide::guarantees#s4-a-clean-stop-has-an-order) and [S10: a dead election closes the
//! gate](crate::guide::guarantees#s10-a-dead-election-closes-the-gate).

mod builder;
mod built;
mod candidate;
mod checks;
mod client;
mod ended;
#[allow(missing_docs, reason = "only `internal` shows it")]
mod hooks;
#[cfg(feature = "internal")]
pub(crate) mod internal;
pub(crate) mod layer;
#[allow(missing_docs, reason = "only `internal` shows it")]
mod lease_watch;
mod liveness;
#[allow(missing_docs, clippy::must_use_candidate, reason = "only `internal` shows it")]
pub(crate) mod machine;
mod observers;
mod panics;
#[allow(missing_docs, clippy::must_use_candidate, reason = "only `internal` shows some of it")]
mod priority;
mod program;
mod report;
mod retreat;
mod running;
mod slow_stop;
mod spread;
mod task;
mod work;

#[cfg(feature = "metrics")]
pub(crate) use self::hooks::{LeaseCall, LeaseHook};
#[cfg(feature = "runtime")]
pub(crate) use self::program::note_missing;
pub use self::{
    builder::ElectionBuilder,
    built::{Election, ErrBuild},
    candidate::Candidate,
    checks::ErrUnhealthy,
    client::{Connections, ReadsOnly},
    ended::{ErrElectionEnded, Finished, LeaseEnd},
    priority::Priority,
    running::Running,
};
