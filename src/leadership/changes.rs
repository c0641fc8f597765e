//! Follows the changes of leadership.

use super::{
    inner::{Grants, State},
    term::LeadershipState,
};
use tokio::sync::watch;

/// Returns the states of a [`Leadership`](super::Leadership) one after the other.
#[derive(Clone, Debug)]
#[must_use = "it tells nothing unless `next` is called"]
pub struct Changes {
    state: watch::Receiver<State>,
    /// The last state that was returned.
    told: Option<LeadershipState>,
}

impl Changes {
    pub(super) fn new(state: watch::Receiver<State>) -> Self {
        Self { state, told: None }
    }

    /// Returns the present state at the first call, and then the newest state after each change. A slow reader may
    /// skip states in between. A renewal is not a change.
    ///
    /// Returns None when the [`Grantor`](super::Grantor) is gone and the last state has been returned. Cancel-safe.
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
