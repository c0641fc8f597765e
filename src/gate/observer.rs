//! Observers: they learn what becomes of each write.

use super::{
    attempt::Attempt,
    error::{ErrLeadershipLost, ErrNotLeader},
};
use crate::request::RequestInfo;
use std::{fmt, sync::Arc};

/// Receives the outcome of each write; see [`WriteGateLayer::with_observer`](super::WriteGateLayer::with_observer).
/// It receives nothing about reads.
///
/// The gate calls it in the task that sends the write, so it must not block or panic, and should be quick. A panic in the
/// buffer of a kube client ends that client. Each method does nothing by default.
pub trait WriteObserver: fmt::Debug + Send + Sync + 'static {
    /// The policy exempts this request: it passes on leaders and followers.
    fn exempted(&self, _request: &RequestInfo<'_>) {}

    /// The gate admits this write. It calls the inner service next.
    fn admitted(&self, _attempt: &Attempt<'_>) {}

    /// The gate rejected a write. Nothing was sent.
    fn rejected(&self, _error: &ErrNotLeader) {}

    /// The gate cut off a write that it had admitted. Its outcome is unknown.
    fn cut_off(&self, _error: &ErrLeadershipLost) {}
}

/// Two observers. Both learn of each write.
#[derive(Debug)]
struct Both(Arc<dyn WriteObserver>, Arc<dyn WriteObserver>);

impl WriteObserver for Both {
    fn exempted(&self, request: &RequestInfo<'_>) {
        self.0.exempted(request);
        self.1.exempted(request);
    }

    fn admitted(&self, attempt: &Attempt<'_>) {
        self.0.admitted(attempt);
        self.1.admitted(attempt);
    }

    fn rejected(&self, error: &ErrNotLeader) {
        self.0.rejected(error);
        self.1.rejected(error);
    }

    fn cut_off(&self, error: &ErrLeadershipLost) {
        self.0.cut_off(error);
        self.1.cut_off(error);
    }
}

/// Makes one observer of the two. Returns the second one alone if there is no first one.
pub(crate) fn beside(
    first: Option<Arc<dyn WriteObserver>>,
    second: Arc<dyn WriteObserver>,
) -> Arc<dyn WriteObserver> {
    match first {
        Some(first) => Arc::new(Both(first, second)),
        None => second,
    }
}
