//! The power to end leadership, without the power to begin it.

use super::{
    inner::{Grants, Inner, State},
    term::Loss,
};
use std::sync::Arc;

/// Closes the gate and ends terms. It opens nothing, so that more than one part of an election may hold a clone.
#[derive(Clone, Debug)]
pub(crate) struct Closer {
    inner: Arc<Inner>,
}

impl Closer {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// Ends leadership at once: no write is admitted, and admitted ones are woken to be cut off.
    pub(crate) fn revoke(&self, loss: Loss) {
        self.inner.revoke(loss);
    }

    /// Closes for good: no grant is made any more, also not one that is being made at this moment.
    pub(crate) fn seal(&self) {
        self.forbid_grants(Grants::Sealed);
    }

    /// Closes, as [`seal`](Self::seal) does, until [`resume`](Self::resume).
    pub(crate) fn suspend(&self) {
        self.forbid_grants(Grants::Suspended);
    }

    /// Allows grants again, unless the gate is sealed. A gate that has closed stays closed until the next grant.
    pub(crate) fn resume(&self) {
        self.inner.state.send_if_modified(|state| {
            if state.grants == Grants::Suspended {
                state.grants = Grants::Allowed;
            }
            false
        });
    }

    fn forbid_grants(&self, at_least: Grants) {
        self.inner.close_and(|state: &mut State| state.grants = state.grants.max(at_least));
    }
}
