//! Locks: the conformance test, locks that break its rules, layers around a lock, and an election over a lock that
//! misbehaves.

mod conformance;
pub mod flawed;
pub mod layers;
#[path = "../../../examples/map_lock/map_lock.rs"]
mod map_lock;
mod misbehaving;
mod mutated;
