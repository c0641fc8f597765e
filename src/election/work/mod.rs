//! Runs a program's work around an election.

mod gated;
mod leader_task;
mod leading;
