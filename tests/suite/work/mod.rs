//! What a program does with an election: work while it leads, controllers, guards, tokens, many elections.

mod fencing_tokens;
mod guarding;
mod lead_if;
pub mod leading;
pub mod many;
mod opening;
mod own_writes;
#[cfg(all(feature = "metrics", feature = "runtime"))] // its log lines are heard by the subscriber of all
pub mod runtime;
mod without_lease;
