//! Candidates with priorities: who asks whom for the lease, and what the holder does.

mod asking;
mod silence;
mod undone;
mod yielding;
