//! The election's signs of life: what health is judged by.

use super::Unhealthy;
use crate::leadership::{Leadership, Moment};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

#[derive(Debug, Default)]
pub(super) struct Pulse {
    renewed: AtomicU64,
    holds: AtomicBool,
    ended: AtomicBool,
}

/// Marks the election as ended when it is dropped, however that comes about (rule S10).
#[derive(Debug)]
pub(super) struct Alive {
    pulse: Arc<Pulse>,
    leadership: Leadership,
}

impl Pulse {
    /// Notes a successful renewal that was sent at `sent`.
    pub(super) fn beat(&self, sent: Moment) {
        self.renewed.store(sent.as_nanos(), Ordering::Release);
        self.holds.store(true, Ordering::Release);
    }

    /// Notes that the lease is no longer this process's.
    pub(super) fn rest(&self) {
        self.holds.store(false, Ordering::Release);
    }

    /// Whether the lease is this process's, as far as it knows, renewed in time or not.
    pub(super) fn holds(&self) -> bool {
        self.holds.load(Ordering::Acquire)
    }

    /// When the last successful renewal was sent; the clock's origin before the first one.
    pub(super) fn renewed(&self) -> Moment {
        Moment::from_nanos(self.renewed.load(Ordering::Acquire))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Alive {
    pub(super) fn new(pulse: Arc<Pulse>, leadership: Leadership) -> Self {
        Self { pulse, leadership }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.pulse.ended.store(true, Ordering::Release);
        self.leadership.note_trouble(Some(Unhealthy::Ended.to_string().into()));
    }
}
