//! The right to lead in one term.

use super::{
    clock::Moment,
    inner::Inner,
    term::{Loss, Term},
};
use std::{fmt, sync::Arc};

/// The right to lead for one term, from a [`Grantor`](super::Grantor). Dropping it ends the term at once
/// ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)).
#[derive(Debug)]
#[must_use = "dropping a grant ends the term"]
pub struct Grant {
    inner: Arc<Inner>,
    term: Term,
    number: u64,
}

/// A grant or an extension came too late: its deadline has passed, or its term has ended.
///
/// It comes from [`Grantor::grant`](super::Grantor::grant) and [`Grant::extend`], for example if the process was frozen
/// after its lease call. The refused grant or extension has changed nothing: it opens no gate, and moves no deadline.
///
/// A second attempt with the same deadline does no harm, but fails again. Acquire or renew the lease once more, and grant
/// a term with a deadline that counts from before this new lease call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrTooLate(pub(super) ());

// === impl Grant ===

impl Grant {
    pub(super) fn new(inner: Arc<Inner>, term: Term, number: u64) -> Self {
        Self { inner, term, number }
    }

    /// Moves the deadline to `deadline`. It never moves the deadline back.
    ///
    /// # Errors
    /// [`ErrTooLate`] if the term has ended or its old deadline has passed. Only a new
    /// [`grant`](super::Grantor::grant) opens the gate then.
    pub fn extend(&self, deadline: Moment) -> Result<(), ErrTooLate> {
        let inner = &self.inner;
        let mut extended = false;
        // This takes the lock, and returns false, because a renewal does not wake observers.
        inner.state.send_if_modified(|_| {
            extended = inner.word.extend(self.number, deadline.as_nanos(), || inner.now());
            false
        });
        if extended { Ok(()) } else { Err(ErrTooLate(())) }
    }

    /// The term of this grant.
    #[cfg(feature = "election")]
    pub(crate) fn term(&self) -> &Term {
        &self.term
    }

    /// Whether the term continues: it was not revoked, and its deadline has not passed.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid(self.number)
    }

    /// Ends this term, unless it has ended already.
    pub fn end(self, loss: Loss) {
        self.end_in_place(loss);
    }

    fn end_in_place(&self, loss: Loss) {
        self.inner.end_if(loss, |current| current == self.number);
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.end_in_place(Loss::Abandoned);
    }
}

// === impl ErrTooLate ===

impl fmt::Display for ErrTooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the validity deadline has passed or the term has ended; leadership needs a new grant")
    }
}

impl std::error::Error for ErrTooLate {}
