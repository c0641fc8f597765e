//! A write that was let in.

use super::{Inner, Loss};
use std::sync::Arc;
use tokio::sync::futures::OwnedNotified;

/// The right of one write to go on. It is counted until it is dropped, and a [`drain`](super::Leadership::drain) waits
/// for it.
///
/// Ask [`is_valid`](Self::is_valid) before each step that could send something, and drop the write as soon as it says
/// no (rule S2).
#[derive(Debug)]
#[must_use = "a write is counted while its admission lives"]
pub struct Admission {
    inner: Arc<Inner>,
    grant: u64,
}

impl Admission {
    pub(super) fn new(inner: Arc<Inner>, grant: u64) -> Self {
        Self { inner, grant }
    }

    /// Whether the write may still go on: its term has not ended and the deadline has not passed.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.word.is_valid(self.grant, || self.inner.now())
    }

    /// A future that resolves when a grant ends, be it this admission's or a later one: look at
    /// [`is_valid`](Self::is_valid) then, and before the first wait. Cancel-safe.
    pub fn ended(&self) -> OwnedNotified {
        self.inner.ended.clone().notified_owned()
    }

    /// How this admission's term was lost; what cut the write off when it is no longer valid. When other terms have
    /// been lost since, how the last of them was.
    #[must_use]
    pub fn loss(&self) -> Loss {
        self.inner.loss_of(self.grant)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if self.inner.word.leave() {
            self.inner.idle.notify_waiters();
        }
    }
}
