//! The sidecar example as a process, what it stands before, and its callers.

pub mod callers;
pub mod process;
pub mod subprotocols;
pub mod upstream;
pub mod wait;
