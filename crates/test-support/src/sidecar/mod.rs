//! The sidecar as a process, the server behind it, and its callers.

pub mod callers;
pub mod process;
pub mod subprotocols;
pub mod upstream;
pub mod wait;
