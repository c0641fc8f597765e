//! Servers, leases and code of the program that misbehave: the gate stays shut, and the candidate contends on.

mod ambiguous_writes;
mod bad_input;
mod configuration;
pub mod panics;
mod retries;
mod servers;
mod storms;
