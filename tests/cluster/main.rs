//! What the crate promises, over real sockets and in real time: against the in-process API server and a real one alike.
#![cfg(all(feature = "election", feature = "test-util"))]
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

mod candidate;
mod conformance;
mod line;
mod outsider;
mod support;
mod world;
