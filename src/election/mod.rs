//! The election: a side task that contends for the lease, for as long as it is not told to stop.
//!
//! [`Election`] is what a program builds, [`Running`] the task under way, [`Leader`] the handle to ask. Inside,
//! `candidacy` decides, purely, from what was seen and when, and `precedence` whether a live holder is preempted; `observer` follows the lease by watch; `elector` is the loop
//! between them, the lock and the leadership word.

mod attendants;
mod builder;
mod candidacy;
mod connections;
mod elector;
mod leader;
mod observer;
mod precedence;
mod priority;
mod pulse;
mod running;
mod wrapped;

pub use self::{
    builder::{BuildError, Election, ElectionBuilder},
    connections::Connections,
    leader::{Leader, Unhealthy},
    priority::{InvalidPriority, Priority},
    running::{ElectionEnded, Running, Stopped},
};
