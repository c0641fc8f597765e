//! Code that the tests of kube-leader-gate share.
//!
//! `cancellation` drops a future at each of its polls. `harness` runs tests that need programs which may be missing.
//! `apiserver` starts a real kube-apiserver, and its `assets` finds the programs. `sidecar` starts the program of that
//! name and calls it. `program` finds or builds examples and programs, `refusals` checks the errors of a gate, `usage` is
//! what a process uses, and `wait` waits for conditions. `coordination`, `early_takeover`, `kube_leader_gate_fence` and
//! `kube_leader_gate_sidecar` are packages of their own, for tests and examples of the crate: its gate alone builds
//! without them.

#[cfg(feature = "election")]
pub mod apiserver;
pub mod cancellation;
pub mod harness;
#[cfg(feature = "election")]
pub mod program;
#[cfg(feature = "election")]
pub mod refusals;
#[cfg(feature = "election")]
pub mod sidecar;
pub mod usage;
pub mod wait;

#[cfg(feature = "election")]
pub use {
    kube_leader_gate_coordination as coordination, kube_leader_gate_early_takeover as early_takeover,
    kube_leader_gate_fence, kube_leader_gate_sidecar,
};
