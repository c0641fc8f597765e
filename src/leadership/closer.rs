//! Ends leadership, but cannot begin it.

use super::{
    inner::{Grants, Inner, State},
    term::Loss,
};
use std::sync::Arc;

/// Closes the gate and ends terms. It cannot open the gate, so several parts of an election may hold a clone.
#[derive(Clone, Debug)]
pub(crate) struct Closer {
    inner: Arc<Inner>,
}

impl Closer {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// Ends leadership at once. The gate admits no write, and wakes each admitted write so that it is cut off.
    pub(crate) fn revoke(&self, loss: Loss) {
        self.inner.revoke(loss);
    }

    /// Closes the gate for good. No later grant opens it, and neither does a grant that another thread is making now.
    pub(crate) fn seal(&self) {
        self.forbid_grants(Grants::Sealed);
    }

    /// Closes the gate, as [`seal`](Self::seal) does, but only until [`resume`](Self::resume).
    pub(crate) fn suspend(&self) {
        self.forbid_grants(Grants::Suspended);
    }

    /// Lets no other term follow the present one until [`resume`](Self::resume). The gate stays open.
    pub(crate) fn keep_to_this_term(&self) {
        self.inner.state.send_if_modified(|state| {
            state.grants = state.grants.max(Grants::Suspended);
            false
        });
    }

    /// Allows grants again, unless the gate is sealed. A closed gate stays closed until the next grant.
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
