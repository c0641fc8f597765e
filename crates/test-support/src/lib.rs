//! Code that the tests of kube-leader-gate share.
//!
//! `cancellation` drops a future at each of its polls. `harness` runs tests that need programs which may be missing.
//! `apiserver` starts a real kube-apiserver, and its `assets` finds the programs. `sidecar` starts the program of that
//! name and calls it. `program` finds or builds examples and programs, and `port` finds ports for them. `refusals` checks
//! the errors of a gate, `usage` is what a process uses, and `wait` waits for conditions. [`assert_safety`] judges a log.
//! `early_takeover`, `kube_leader_gate_fence` and `kube_leader_gate_sidecar` are packages of their own, for tests and
//! examples of the crate: its gate alone builds without them.

#[cfg(feature = "election")]
pub mod apiserver;
pub mod cancellation;
pub mod harness;
pub mod port;
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
    kube_leader_gate_early_takeover as early_takeover, kube_leader_gate_fence, kube_leader_gate_sidecar,
};

/// Asserts what a judge of a log of writes, or of two gates at once, finds. `make test` never tries a test again whose
/// message begins so: chance does not explain it.
///
/// ```should_panic
/// let late = ["configmaps/work"];
/// test_support::assert_safety!(late.is_empty(), "written after the takeover: {late:?}");
/// ```
#[macro_export]
macro_rules! assert_safety {
    ($holds:expr, $($found:tt)+) => {
        assert!($holds, "SAFETY: {}", format_args!($($found)+))
    };
}
