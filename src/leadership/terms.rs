//! The terms of this process, one after the other. This is the only place that waits for a gain.

use super::{
    inner::{Grants, Inner, State},
    tenure::Tenure,
};
use std::sync::Arc;
use tokio::sync::watch;

/// Returns each term in which the gate admits writes, once. If two terms begin between two calls, it returns only the
/// newer one.
#[derive(Debug)]
pub(crate) struct Terms {
    inner: Arc<Inner>,
    state: watch::Receiver<State>,
    /// The number of the last grant that was returned; 0 if none.
    told: u64,
}

impl Terms {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        let state = inner.state.subscribe();
        Self { inner, state, told: 0 }
    }

    /// Waits until the gate admits writes in a new term. Returns None if no more grants can come. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Tenure> {
        loop {
            {
                // The number and the term match while the lock is held.
                let state = self.state.borrow_and_update();
                if state.grants >= Grants::Sealed {
                    return None;
                }
                let new = state.current.as_ref().filter(|current| current.number != self.told);
                if let Some(current) = new.filter(|_| self.inner.is_open()) {
                    self.told = current.number;
                    return Some(Tenure::new(self.inner.clone(), current.number, current.term.clone()));
                }
            }
            // Cannot fail: `self` keeps the sender.
            let _ = self.state.changed().await;
        }
    }
}
