//! The leader election: a task that contends for the lease until it is told to stop.
//!
//! A program builds an [`Election`], starts it as a [`Running`] task, and asks its [`Candidate`] handle who leads.
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
mod layer;
#[allow(missing_docs, reason = "only `internal` shows it")]
mod lease_watch;
mod liveness;
#[allow(missing_docs, clippy::must_use_candidate, reason = "only `internal` shows it")]
mod machine;
mod observers;
#[allow(missing_docs, clippy::must_use_candidate, reason = "only `internal` shows some of it")]
mod priority;
mod report;
mod running;
mod spread;
mod task;
mod work;

#[cfg(feature = "metrics")]
pub(crate) use self::hooks::{LeaseCall, LeaseHook};
pub use self::{
    builder::ElectionBuilder,
    built::{Election, ErrBuild},
    candidate::Candidate,
    checks::ErrUnhealthy,
    client::{Connections, ReadsOnly},
    ended::{ErrElectionEnded, Finished, LeaseEnd},
    layer::{LockContext, LockLayer, Trouble},
    priority::Priority,
    running::Running,
};
