//! Runs a program's work around an election.

mod gated;
mod leading;
