//! Clocks that tests drive.

use crate::leadership::{Clock, Moment};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// A clock that moves only when a test advances it. Clones share it.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

/// Tokio's clock. It stops with `tokio::time::pause` and moves with `advance`.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: Instant,
}

impl ManualClock {
    /// Makes a clock that is one hour after its origin.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(3_600_000_000_000)))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

impl TokioClock {
    /// Makes a clock that is one hour after its origin.
    ///
    /// # Panics
    /// Outside a tokio runtime with a paused clock.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(3_600_000_000_000).saturating_add(self.origin.elapsed())
    }
}
