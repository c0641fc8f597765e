//! Takes the place of `src/leadership/sync.rs` in the models: the same, with the atomics and locks of loom.

use std::sync::Arc;
use tokio::sync::{
    Notify,
    futures::{Notified, OwnedNotified},
    watch,
};

pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A value under a lock, and a channel that tells of its changes.
///
/// A lock of loom stands around the channel: loom then switches threads while a thread holds the lock, and the channel's
/// own lock is always free.
#[derive(Debug)]
pub(super) struct Watched<T> {
    channel: watch::Sender<T>,
    lock: loom::sync::RwLock<()>,
}

impl<T> Watched<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            channel: watch::Sender::new(value),
            lock: loom::sync::RwLock::new(()),
        }
    }

    /// Changes the value under the lock. Wakes the subscribers if `change` returns true.
    pub(super) fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        let _locked = self.lock.write().unwrap();
        self.channel.send_if_modified(change);
    }

    /// Reads the value under the lock, beside other readers.
    pub(super) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let _locked = self.lock.read().unwrap();
        look(&self.channel.borrow())
    }

    /// Follows the value. A receiver takes no lock of loom, so a model must not use one.
    pub(super) fn subscribe(&self) -> watch::Receiver<T> {
        self.channel.subscribe()
    }
}

/// Wakes all tasks that wait.
///
/// loom cannot look into a [`Notify`]. So each call adds one step that orders threads as the notify's own counter does.
#[derive(Debug, Default)]
pub(super) struct Bell {
    notify: Arc<Notify>,
    rings: AtomicUsize,
}

impl Bell {
    /// Wakes each task that waits.
    pub(super) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        self.notify.notify_waiters();
    }

    /// Resolves at the next ring after this call.
    pub(super) fn next(&self) -> Notified<'_> {
        self.rings.fetch_add(0, Ordering::AcqRel);
        self.notify.notified()
    }

    /// As [`next`](Self::next), but borrows nothing.
    pub(super) fn next_owned(&self) -> OwnedNotified {
        self.rings.fetch_add(0, Ordering::AcqRel);
        self.notify.clone().notified_owned()
    }
}
