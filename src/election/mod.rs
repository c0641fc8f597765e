//! The election: a side task that contends for the lease, for as long as it is not told to stop.
//!
//! [`Election`] is what a program builds, [`Running`] the task under way, [`Candidate`] the handle to ask. Inside,
//! `candidacy` says what to do next, purely, from what was seen and when; `preemption` is how a live holder is replaced;
//! `lease_watch` follows the lease by watch; `elector` is the loop between them, the lock and the leadership word.

mod attendants;
mod builder;
mod built;
mod candidacy;
mod candidate;
mod client;
mod elector;
mod ended;
mod hooks;
mod lease_watch;
mod preemption;
mod pulse;
mod running;
mod wall_clock;
mod work;

#[cfg(feature = "metrics")]
pub(crate) use self::hooks::{LeaseCall, LeaseHook};
pub use self::{
    builder::ElectionBuilder,
    built::{Election, ErrBuild},
    candidate::{Candidate, ErrUnhealthy},
    client::Connections,
    ended::{ErrElectionEnded, Finished, LeaseEnd},
    preemption::{ErrInvalidPriority, Priority},
    running::Running,
};
