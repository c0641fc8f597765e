//! The terms of this process, one after the other. This is the only place that waits for a gain.

use super::{
    Inner, Leadership, Term,
    inner::{Grants, State},
};
use std::sync::Arc;
use tokio::sync::watch;

/// Returns each term in which the gate admits writes, once. If two terms begin between two calls, it returns only the
/// newer one.
#[derive(Debug)]
pub(crate) struct Terms {
    leadership: Leadership,
    state: watch::Receiver<State>,
    /// The number of the last grant that was returned; 0 if none.
    told: u64,
}

/// A term in which this process leads or has led. It counts no write.
#[derive(Debug)]
pub(crate) struct Tenure {
    pub(super) inner: Arc<Inner>,
    pub(super) grant: u64,
    term: Term,
}

// === impl Terms ===

impl Terms {
    pub(crate) fn new(leadership: Leadership) -> Self {
        let state = leadership.inner.state.subscribe();
        Self { leadership, state, told: 0 }
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
                if let Some(current) = new.filter(|_| self.leadership.can_write()) {
                    self.told = current.number;
                    let (inner, term) = (self.leadership.inner.clone(), current.term.clone());
                    return Some(Tenure { inner, grant: current.number, term });
                }
            }
            // Cannot fail: `self` keeps the sender.
            let _ = self.state.changed().await;
        }
    }
}

// === impl Tenure ===

impl Tenure {
    pub(crate) fn term(&self) -> &Term {
        &self.term
    }
}
