//! Early takeover over the in-process API server, in paused time: a holder whose container has ended is succeeded before its
//! lease runs out, and no other holder is.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod again;
mod look_alikes;
mod pods;
mod support;
mod takeovers;
mod troubles;
