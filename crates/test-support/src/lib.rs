//! Code that the tests of kube-leader-gate share.
//!
//! `cancellation` drops a future at each of its polls. `harness` runs tests that need programs which may be missing.
//! `apiserver` starts a real kube-apiserver, and its `assets` finds the programs. `sidecar` starts the example of that
//! name and calls it. `example` builds examples, `refusals` checks the errors of a gate, `usage` is
//! what a process uses, and `wait` waits for conditions.

#[cfg(feature = "election")]
pub mod apiserver;
pub mod cancellation;
#[cfg(feature = "election")]
pub mod example;
pub mod harness;
#[cfg(feature = "election")]
pub mod refusals;
#[cfg(feature = "election")]
pub mod sidecar;
pub mod usage;
pub mod wait;
