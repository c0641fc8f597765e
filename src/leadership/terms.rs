//! The terms of this process, one after the other: the one thing that waits for a gain.

use super::{
    Inner, Leadership, Term,
    inner::{Grants, State},
};
use std::sync::Arc;
use tokio::sync::watch;

/// Hands out each term in which writes are admitted, once. Two terms between two looks are one: the newer.
#[derive(Debug)]
pub(crate) struct Terms {
    leadership: Leadership,
    state: watch::Receiver<State>,
    /// The number of the last grant that was handed out; 0 is none.
    told: u64,
}

/// A term in which this process leads, or has led; it counts no write.
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
                if let Some(current) = new.filter(|_| self.leadership.can_write()) {
                    self.told = current.number;
                    let (inner, term) = (self.leadership.inner.clone(), current.term.clone());
                    return Some(Tenure { inner, grant: current.number, term });
                }
            }
            // No error: `self` keeps the sender.
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
