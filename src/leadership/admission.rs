//! A write that was let in.

use super::{inner::Inner, term::Loss};
use std::sync::Arc;
use tokio::sync::futures::OwnedNotified;

/// The right of one write to go on. It is counted until it is dropped, and a [`drain`](super::Leadership::drain) waits
/// for it.
///
/// Ask [`is_valid`](Self::is_valid) before each step that could send something, and drop the write as soon as it says
/// no (rule S2). Call [`answered`](Self::answered) once the API server has answered: a write that ends without an answer
/// may still be carried out, and holds the lease (rule S4).
#[derive(Debug)]
#[must_use = "a write is counted while its admission lives"]
pub struct Admission {
    inner: Arc<Inner>,
    grant: u64,
    answered: bool,
}

impl Admission {
    pub(super) fn new(inner: Arc<Inner>, grant: u64) -> Self {
        Self { inner, grant, answered: false }
    }

    /// Whether the write may still go on: its term has not ended and the deadline has not passed.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.word.is_valid(self.grant, || self.inner.now())
    }

    /// Notes that the API server has answered this write, so that its outcome is known when the admission is dropped.
    ///
    /// The head of a response is an answer, whatever its status. An error is no answer: the write may have left before it.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// A future that resolves when a grant ends, be it this admission's or a later one: look at
    /// [`is_valid`](Self::is_valid) then, and before the first wait. Cancel-safe.
    pub fn term_ended(&self) -> OwnedNotified {
        self.inner.ended.clone().notified_owned()
    }

    /// How this admission's term was lost; what cut the write off when it is no longer valid.
    #[must_use]
    pub fn loss(&self) -> Loss {
        self.inner.loss_of(self.grant)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if !self.answered {
            // Before it is counted out: a drain that no longer sees this write sees this note.
            self.inner.note_unanswered(self.inner.clock.now());
        }
        if self.inner.word.leave() {
            self.inner.idle.notify_waiters();
        }
    }
}
