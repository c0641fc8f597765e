//! Locks: the conformance test, locks that break its rules, and an election over a lock that misbehaves.
#![expect(unreachable_pub, reason = "the modules of a test are no library")]

mod conformance;
mod map_lock;
mod misbehaving;
mod mutated;
