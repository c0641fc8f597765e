//! Atomics, a lock and wake-ups: with these, the threads of a process share one leadership.

use std::sync::Arc;
use tokio::sync::{
    Notify,
    futures::{Notified, OwnedNotified},
    watch,
};

pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A value under a lock, and a channel that tells of its changes.
#[derive(Debug)]
pub(super) struct Watched<T> {
    channel: watch::Sender<T>,
}

impl<T> Watched<T> {
    pub(super) fn new(value: T) -> Self {
        Self { channel: watch::Sender::new(value) }
    }

    /// Changes the value under the lock. Wakes the subscribers if `change` returns true.
    pub(super) fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        self.channel.send_if_modified(change);
    }

    /// Reads the value under the lock. Several threads may read at the same time.
    pub(super) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.channel.borrow())
    }

    /// Follows the value.
    pub(super) fn subscribe(&self) -> watch::Receiver<T> {
        self.channel.subscribe()
    }
}

/// Wakes all tasks that wait.
#[derive(Debug, Default)]
pub(super) struct Bell {
    notify: Arc<Notify>,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.notify.notify_waiters();
    }

    /// Resolves at the next ring after this call.
    pub(super) fn next(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// As [`next`](Self::next), but borrows nothing.
    pub(super) fn next_owned(&self) -> OwnedNotified {
        self.notify.clone().notified_owned()
    }
}
