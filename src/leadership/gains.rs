//! The gains of leadership, one after the other.

use super::{Leadership, LeadershipState};
use tokio::sync::watch;

/// Remembers which gain it told of last.
#[derive(Debug)]
pub(crate) struct Gains {
    leadership: Leadership,
    state: watch::Receiver<LeadershipState>,
    /// The number of the last grant that was told of; 0 is none.
    told: u64,
}

/// What there is to tell now.
enum News {
    Gain(u64),
    None,
    /// No grant is made any more.
    Over,
}

// === impl Gains ===

impl Gains {
    pub(crate) fn new(leadership: Leadership) -> Self {
        let state = leadership.inner.state.subscribe();
        Self { leadership, state, told: 0 }
    }

    /// Waits until writes are admitted in a grant that was not told of yet. None once no grant is made any more.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<()> {
        loop {
            match self.look() {
                News::Gain(number) => {
                    self.told = number;
                    return Some(());
                }
                News::Over => return None,
                // No error: `self` keeps the sender.
                News::None => drop(self.state.changed().await),
            }
        }
    }

    fn look(&mut self) -> News {
        // A grant is whole while the lock is held.
        let state = self.state.borrow_and_update();
        if state.sealed {
            return News::Over;
        }
        // By number: two terms between two looks are one gain, and no gain is taken for an earlier one.
        let number = self.leadership.inner.word.current_grant();
        let is_new = state.term.is_some() && number != self.told && self.leadership.can_write();
        if is_new { News::Gain(number) } else { News::None }
    }
}
