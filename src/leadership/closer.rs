//! Ends leadership, but cannot begin it.

use super::{
    inner::{Grants, Inner, State},
    term::Loss,
};
use crate::defect;
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

    /// Lets no other term follow the present one until [`resume`](Self::resume). The gate stays open. Call it before the
    /// work of the term begins: the task that polls the work may be too late to forbid the next term (rule S11).
    pub(crate) fn keep_to_this_term(&self) {
        let late =
            defect::is_back("next-term-waits-for-a-poll") || defect::is_back("contends-while-work-ends");
        let at_least = if late { Grants::Allowed } else { Grants::Suspended };
        self.inner.state.send_if_modified(|state| {
            state.grants = state.grants.max(at_least);
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
