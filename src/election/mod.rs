//! The election: a side task that contends for the lease, for as long as it is not told to stop.
//!
//! [`Election`] is what a program builds, [`Running`] the task under way, [`Leader`] the handle to ask. Inside,
//! `candidacy` decides, purely, from what was seen and when, and `precedence` whether a live holder is preempted; `observer`
//! follows the lease by watch; `elector` is the loop between them, the lock and the leadership word.

mod attendants;
mod build_error;
mod builder;
mod candidacy;
pub(crate) mod complaint;
mod connections;
mod elector;
mod ended;
mod hooks;
mod leader;
mod observer;
mod precedence;
mod priority;
mod pulse;
mod running;
mod wrapped;

#[cfg(feature = "metrics")]
pub(crate) use self::hooks::{LeaseCall, LeaseObserver};
pub use self::{
    build_error::BuildError,
    builder::{Election, ElectionBuilder},
    connections::Connections,
    ended::{ElectionEnded, Stopped},
    leader::{Leader, Unhealthy},
    priority::{InvalidPriority, Priority},
    running::Running,
};

pub(crate) use self::observer::backoff;
