//! Running a program around an election.

mod gated;
mod leading;
