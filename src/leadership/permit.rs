//! A write that the gate has admitted.

use super::{inner::Inner, term::Loss};
use std::sync::Arc;
use tokio::sync::futures::OwnedNotified;

/// The right of one write to continue. The write counts as under way until this is dropped, and
/// [`drain`](super::Leadership::drain) waits for it.
///
/// Call [`is_valid`](Self::is_valid) before each step that could send something. If it returns false, drop the write
/// ([rule S2](crate::guide::guarantees#s2-a-lost-term-cuts-off-its-writes)).
///
/// Call [`answered`](Self::answered) once the receiver has answered: the API server, or a store of your own. If a write
/// ends without an answer, the receiver may still carry it out. The election then keeps the lease for a while
/// ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
#[derive(Debug)]
#[must_use = "a write is counted while its admission lives"]
pub struct WritePermit {
    inner: Arc<Inner>,
    grant: u64,
    answered: bool,
}

impl WritePermit {
    pub(super) fn new(inner: Arc<Inner>, grant: u64) -> Self {
        Self { inner, grant, answered: false }
    }

    /// Whether the write may continue: its term has not ended, and the deadline has not passed.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid(self.grant)
    }

    /// Records that the receiver has answered this write, so its outcome is known.
    ///
    /// The head of an HTTP response is an answer, unless its status is 408 or 5xx. A refusal by a store is also an answer,
    /// for example because of a violated constraint. Any other error is not an answer: the write may have been sent
    /// before the error.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// A future that resolves when any grant ends: this admission's grant or a later one. Call
    /// [`is_valid`](Self::is_valid) before the first wait and after each one. Cancel-safe.
    pub fn term_ended(&self) -> OwnedNotified {
        self.inner.ended.next_owned()
    }

    /// How this admission's term ended. If the admission is no longer valid, this is why the write was cut off.
    #[must_use]
    pub fn loss(&self) -> Loss {
        self.inner.loss_of(self.grant)
    }
}

impl Drop for WritePermit {
    fn drop(&mut self) {
        if !self.answered {
            // If the clock panics, this write counts as under way for ever. A stop waits for this write until the drain
            // timeout, and then cuts it off.
            let Some(now) = self.inner.time_of_end() else { return };
            // Note this before the write is counted out. A drain that no longer counts this write then sees the note.
            self.inner.note_unanswered(now);
        }
        if self.inner.word.leave() {
            self.inner.idle.ring();
        }
    }
}
