//! The states of leadership, one after the other.

use super::{LeadershipState, inner::State};
use tokio::sync::watch;

/// The states of a [`Leadership`](super::Leadership), one after the other.
#[derive(Clone, Debug)]
pub struct Changes {
    state: watch::Receiver<State>,
    /// What was told last.
    told: Option<LeadershipState>,
}

impl Changes {
    pub(super) fn new(state: watch::Receiver<State>) -> Self {
        Self { state, told: None }
    }

    /// The present state at the first call, then the newest one after each change: a slow reader sees the newest, not each
    /// one. Renewals are no changes. None once the last [`Leadership`](super::Leadership) is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<LeadershipState> {
        loop {
            if self.told.is_some() {
                self.state.changed().await.ok()?;
            }
            let seen = self.state.borrow_and_update().view();
            if self.told.as_ref() != Some(&seen) {
                self.told = Some(seen.clone());
                return Some(seen);
            }
        }
    }
}
