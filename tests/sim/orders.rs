//! What the plan tells the work of a replica.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use tokio::sync::Notify;

/// The order to give leadership up.
#[derive(Debug, Default)]
pub struct GiveUp {
    told: Notify,
    /// How long to stay away, in milliseconds.
    away: AtomicU64,
}

impl GiveUp {
    /// Tells the replica to give up, and to stay away for so many milliseconds.
    pub fn order(&self, away: u64) {
        self.away.store(away.max(1_000), Ordering::Relaxed);
        self.told.notify_waiters();
    }

    /// Waits for the order. Returns how long to stay away.
    pub async fn told(&self) -> Duration {
        self.told.notified().await;
        Duration::from_millis(self.away.load(Ordering::Relaxed))
    }
}

/// Whether work keeps its thread.
#[derive(Debug, Default)]
pub struct Computing {
    does: AtomicBool,
    changed: Notify,
}

impl Computing {
    pub fn set(&self, computes: bool) {
        self.does.store(computes, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Waits until work begins or ends to compute.
    pub async fn is(&self, computes: bool) {
        loop {
            self.changed.notified().await;
            if self.does.load(Ordering::Relaxed) == computes {
                return;
            }
        }
    }
}
