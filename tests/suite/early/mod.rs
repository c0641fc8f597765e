//! Early takeover: a holder whose container has ended is succeeded before its lease runs out, and no other holder is.

mod look_alikes;
pub mod pods;
mod takeovers;
mod troubles;
