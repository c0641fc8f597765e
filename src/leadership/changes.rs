//! The states of leadership, one after the other.

use super::{
    inner::{Grants, State},
    term::LeadershipState,
};
use tokio::sync::watch;

/// The states of a [`Leadership`](super::Leadership), one after the other.
#[derive(Clone, Debug)]
#[must_use = "it tells nothing unless `next` is called"]
pub struct Changes {
    state: watch::Receiver<State>,
    /// The state that was returned last.
    told: Option<LeadershipState>,
}

impl Changes {
    pub(super) fn new(state: watch::Receiver<State>) -> Self {
        Self { state, told: None }
    }

    /// The present state at the first call, then the newest one after each change: a slow reader sees the newest state, not
    /// each one. Renewals are no changes. None once the last state was returned and the [`Grantor`](super::Grantor) is
    /// gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<LeadershipState> {
        loop {
            let (seen, gone) = {
                let state = self.state.borrow_and_update();
                (state.view(), state.grants == Grants::Gone)
            };
            if self.told.as_ref() != Some(&seen) {
                self.told = Some(seen.clone());
                return Some(seen);
            }
            if gone {
                return None;
            }
            self.state.changed().await.ok()?;
        }
    }
}
