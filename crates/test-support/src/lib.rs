//! What the tests of kube-leader-gate share.
//!
//! `harness` runs tests that need programs which may be missing. `apiserver` starts a real kube-apiserver, and `assets` of
//! it says where the programs are. `sidecar` starts the example of that name and calls it. `example` builds examples,
//! `refusals` looks at what a gate answers, and `wait` waits for conditions.

#[cfg(feature = "election")]
pub mod apiserver;
#[cfg(feature = "election")]
pub mod example;
pub mod harness;
#[cfg(feature = "election")]
pub mod refusals;
#[cfg(feature = "election")]
pub mod sidecar;
pub mod wait;
