//! Each public future of the crate, dropped at each of its polls. `list` finds the futures in the source, and names the
//! test of each.

mod elections;
mod list;
mod locks;
mod orphan;
#[cfg(feature = "runtime")]
mod reconcilers;
mod waits;
mod writes;
