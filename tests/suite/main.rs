//! What the crate promises, over the in-process API server: elections, and the parts that observe or use them. And
//! what the documents say about it.
#![cfg(all(feature = "election", feature = "test-util"))]
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod acquiring;
mod documents;
mod faults;
mod locks;
mod losing;
mod observers;
mod preferring;
mod renewing;
mod stopping;
mod support;
mod work;
