//! Whoever counts what becomes of writes.

use super::{ErrLeadershipLost, ErrNotLeader};
use crate::request::RequestInfo;
use std::fmt;

/// Is told what becomes of each request that is no read; see
/// [`WriteGateLayer::with_observer`](super::WriteGateLayer::with_observer). Of reads it hears nothing.
///
/// It is called on the write's own path, by whoever sends it: it must not block, and should not allocate. What it does
/// not implement does nothing.
pub trait WriteObserver: fmt::Debug + Send + Sync + 'static {
    /// The policy lets this request pass, whoever leads.
    fn exempted(&self, _request: &RequestInfo<'_>) {}

    /// This write is let in, and goes to the inner service next.
    fn admitted(&self, _request: &RequestInfo<'_>) {}

    /// A write was refused. Nothing was sent.
    fn rejected(&self, _error: &ErrNotLeader) {}

    /// A write that had been let in is cut off. Its outcome is unknown.
    fn cut_off(&self, _error: &ErrLeadershipLost) {}
}
