//! The atomics that the word is made of: std's, or loom's when the word is model-checked.

#[cfg(leader_gate_loom)]
pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(leader_gate_loom))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
