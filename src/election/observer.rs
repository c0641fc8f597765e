//! Follows the lease by watch, for ever: connects, yields what it sees, reconnects.

use crate::lease::{LeaseEvent, LeaseTiming, Lock, LockError};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// The longest pause before the watch is tried again, where it is not allowed, say.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

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
    /// Watches that ended before they had yielded anything, in a row.
    fruitless: u32,
}

pub(super) fn observe<L: Lock>(lock: Arc<L>, timing: LeaseTiming) -> Observer {
    stream::unfold(State { lock, timing, events: None, fruitless: 0 }, |mut state| async move {
        let observed = state.next().await;
        Some((observed, state))
    })
    .boxed()
}

impl<L: Lock> State<L> {
    async fn next(&mut self) -> Observed {
        let Some(events) = &mut self.events else {
            return self.connect().await;
        };
        match events.next().await {
            Some(Ok(event)) => {
                self.fruitless = 0;
                Observed::Event(event)
            }
            ended => {
                self.events = None;
                Observed::Down(ended.and_then(Result::err))
            }
        }
    }

    async fn connect(&mut self) -> Observed {
        if self.fruitless > 0 {
            sleep(backoff(self.timing.pause(), self.fruitless - 1, LONGEST_PAUSE)).await;
        }
        // Until an event says otherwise.
        self.fruitless = self.fruitless.saturating_add(1);
        let patience = self.timing.call_timeout();
        match timeout(patience, self.lock.watch()).await {
            Ok(Ok(events)) => {
                self.events = Some(events);
                Observed::Up
            }
            Ok(Err(error)) => Observed::Down(Some(error)),
            Err(_) => Observed::Down(Some(LockError::timeout(patience))),
        }
    }
}

/// The pause after `failures + 1` failures in a row: doubled each time up to `longest`, half of it by chance.
pub(super) fn backoff(first: Duration, failures: u32, longest: Duration) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(longest);
    full.mul_f64(0.5 + 0.5 * fastrand::f64())
}
