//! The terms of this process, one after the other: the one thing that waits for a gain.

use super::{
    inner::{Grants, Inner, State},
    tenure::Tenure,
};
use std::sync::Arc;
use tokio::sync::watch;

/// Hands out each term in which writes are admitted, once. Two terms between two looks are one: the newer.
#[derive(Debug)]
pub(crate) struct Terms {
    inner: Arc<Inner>,
    state: watch::Receiver<State>,
    /// The number of the last grant that was handed out; 0 is none.
    told: u64,
}

impl Terms {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        let state = inner.state.subscribe();
        Self { inner, state, told: 0 }
    }

    /// Waits until writes are admitted in a term that was not handed out yet. None once no grant is made any more.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Tenure> {
        loop {
            {
                // Number and term belong together while the lock is held.
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
            // No error: `self` keeps the sender.
            let _ = self.state.changed().await;
        }
    }
}
