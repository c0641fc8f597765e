//! Follows the lease by watch for ever. If the watch ends, it connects again.

use crate::{
    api::{LONGEST_PAUSE, backoff},
    lease::{ErrLock, LeaseEvent, LeaseTiming, Lock},
};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// If a watch has lasted this long, the next one may begin at once.
const STEADY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) enum WatchNews {
    /// The watch has begun. Earlier events are unknown, so read the lease once.
    Up,
    Event(LeaseEvent),
    /// The watch has ended, with or without an error. The stream begins another one.
    Down(Option<ErrLock>),
}

/// An endless stream. Dropping it ends the watch. `next` is cancel-safe.
pub(super) type LeaseWatch = BoxStream<'static, WatchNews>;

struct State<L: Lock> {
    lock: Arc<L>,
    timing: LeaseTiming,
    events: Option<L::Events>,
    /// When the last watch was requested.
    asked: Instant,
    /// How many watches in a row have failed or ended early.
    short_lived: u32,
}

pub(super) fn watch_lease<L: Lock>(lock: Arc<L>, timing: LeaseTiming) -> LeaseWatch {
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
    async fn next(&mut self) -> WatchNews {
        let Some(events) = &mut self.events else {
            return self.connect().await;
        };
        match events.next().await {
            Some(Ok(event)) => WatchNews::Event(event),
            ended => {
                self.events = None;
                if self.asked.elapsed() >= STEADY {
                    self.short_lived = 0;
                }
                WatchNews::Down(ended.and_then(Result::err))
            }
        }
    }

    async fn connect(&mut self) -> WatchNews {
        if let Some(before) = self.short_lived.checked_sub(1) {
            sleep(backoff(self.timing.pause(), before, LONGEST_PAUSE)).await;
        }
        // Counts as short-lived until it has lasted for a while.
        self.short_lived = self.short_lived.saturating_add(1);
        self.asked = Instant::now();
        let patience = self.timing.call_timeout();
        let outcome = timeout(patience, self.lock.watch()).await;
        match outcome.unwrap_or_else(|_| Err(ErrLock::timeout(patience))) {
            Ok(events) => {
                self.events = Some(events);
                WatchNews::Up
            }
            Err(error) => WatchNews::Down(Some(error)),
        }
    }
}
