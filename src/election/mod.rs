//! The election: a side task that contends for the lease, for as long as it is not told to stop.
//!
//! [`Election`] is what a program builds, [`Running`] the task under way, [`Candidate`] the handle to ask. Inside,
//! `candidacy` says what to do next, purely, from what was seen and when; `preemption` is how a live holder is replaced;
//! `observer` follows the lease by watch; `elector` is the loop between them, the lock and the leadership word.

mod attendants;
mod build_error;
mod builder;
mod candidacy;
mod candidate;
mod client;
pub(crate) mod complaint;
mod elector;
mod ended;
mod hooks;
mod observer;
mod preemption;
mod pulse;
mod running;
mod wall_clock;
mod work;
mod wrapped;

#[cfg(feature = "metrics")]
pub(crate) use self::hooks::{LeaseCall, LeaseObserver};
pub use self::{
    build_error::BuildError,
    builder::{Election, ElectionBuilder},
    candidate::{Candidate, Unhealthy},
    client::Connections,
    ended::{ElectionEnded, Finished, LeaseEnd},
    preemption::{InvalidPriority, Priority},
    running::Running,
};

pub(crate) use self::observer::backoff;
