//! Observers of writes.

use super::{
    attempt::Attempt,
    error::{ErrLeadershipLost, ErrNotLeader},
};
use crate::request::RequestInfo;
use std::fmt;

/// Receives the outcome of each write; see [`WriteGateLayer::with_observer`](super::WriteGateLayer::with_observer).
/// It receives nothing about reads.
///
/// The gate calls it in the task that sends the write, so it must not block, and should not allocate. Each method
/// does nothing by default.
pub trait WriteObserver: fmt::Debug + Send + Sync + 'static {
    /// The policy exempts this request: it passes on leaders and followers.
    fn exempted(&self, _request: &RequestInfo<'_>) {}

    /// The gate admits this write. It calls the inner service next.
    fn admitted(&self, _attempt: &Attempt<'_>) {}

    /// The gate rejected a write. Nothing was sent.
    fn rejected(&self, _error: &ErrNotLeader) {}

    /// The gate cut off a write that it had admitted. Its outcome is unknown.
    fn cut_off(&self, _error: &ErrLeadershipLost) {}

    /// The API server's fence refused a write that the gate had admitted. Nothing was changed.
    fn fenced(&self, _error: &ErrNotLeader) {}
}
