//! Follows the lease by watch, for ever: connects, yields what it sees, reconnects.

use crate::lease::{LeaseEvent, LeaseTiming, Lock, LockError};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// The longest pause before the watch is tried again, where it is not allowed, say.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A watch that has stood for so long may be followed by the next one at once.
const STEADY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) enum Observed {
    /// The watch stands. What happened before it is not known: read the lease once.
    Up,
    Event(LeaseEvent),
    /// The watch has ended, with an error or by itself. It will be tried again.
    Down(Option<LockError>),
}

/// An endless stream; dropping it ends the watch. `next` is cancel-safe.
pub(super) type Observer = BoxStream<'static, Observed>;

struct State<L: Lock> {
    lock: Arc<L>,
    timing: LeaseTiming,
    events: Option<L::Events>,
    /// When the last watch was asked for.
    asked: Instant,
    /// Watches that failed or ended early, in a row.
    short_lived: u32,
}

pub(super) fn observe<L: Lock>(lock: Arc<L>, timing: LeaseTiming) -> Observer {
    stream::unfold(
        State { lock, timing, events: None, asked: Instant::now(), short_lived: 0 },
        |mut state| async move {
            let observed = state.next().await;
            Some((observed, state))
        },
    )
    .boxed()
}

impl<L: Lock> State<L> {
    async fn next(&mut self) -> Observed {
        let Some(events) = &mut self.events else {
            return self.connect().await;
        };
        match events.next().await {
            Some(Ok(event)) => Observed::Event(event),
            ended => {
                self.events = None;
                if self.asked.elapsed() >= STEADY {
                    self.short_lived = 0;
                }
                Observed::Down(ended.and_then(Result::err))
            }
        }
    }

    async fn connect(&mut self) -> Observed {
        if self.short_lived > 0 {
            sleep(backoff(self.timing.pause(), self.short_lived - 1, LONGEST_PAUSE)).await;
        }
        // Until it has stood for a while.
        self.short_lived = self.short_lived.saturating_add(1);
        self.asked = Instant::now();
        let patience = self.timing.call_timeout();
        let outcome = timeout(patience, self.lock.watch()).await;
        match outcome.unwrap_or_else(|_| Err(LockError::timeout(patience))) {
            Ok(events) => {
                self.events = Some(events);
                Observed::Up
            }
            Err(error) => Observed::Down(Some(error)),
        }
    }
}

/// The pause after `failures + 1` failures in a row: doubled each time up to `longest`, half of it by chance.
pub(crate) fn backoff(first: Duration, failures: u32, longest: Duration) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(longest);
    full.mul_f64(0.5 + 0.5 * fastrand::f64())
}
