//! Locks: the conformance test, locks that break its rules, and an election over a lock that misbehaves.

mod conformance;
#[path = "../../../examples/map_lock/map_lock.rs"]
mod map_lock;
mod misbehaving;
mod mutated;
