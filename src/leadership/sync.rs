//! The atomics of the word: from std, or from loom for model checking.

#[cfg(leader_gate_loom)]
pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(not(leader_gate_loom))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
