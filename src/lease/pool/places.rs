//! Limits how many calls of one pool are under way at once: each call needs a connection, and is work for the API server.

use futures_util::{FutureExt, future::BoxFuture};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls may be under way at once, in three rooms. The first room is for leases whose last call had an answer. The
/// second is for leases whose last call had none, and the third is for leases whose last two or more calls had none. Other calls
/// wait. So leases whose calls hang do not delay the other leases, not even a lease that has lost a single call. And if the API
/// server answers no call, not all leases call it at once.
const ROOMS: [usize; 3] = [32, 16, 16];

/// The places of one pool.
#[derive(Clone, Debug)]
pub(in crate::lease) struct Rooms([Arc<Semaphore>; 3]);

/// The places for the calls of one lock. An election takes one before it makes a call. Clones are for the same lock.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    rooms: Rooms,
    unanswered: Arc<AtomicUsize>,
}

/// The place of one call. Dropping it frees the place for the next call.
#[derive(Debug)]
pub(crate) struct Place(
    #[expect(dead_code, reason = "it is kept, and dropped")] Option<OwnedSemaphorePermit>,
);

// === impl Rooms ===

impl Rooms {
    pub(in crate::lease) fn new() -> Self {
        Self(ROOMS.map(|places| Arc::new(Semaphore::new(places))))
    }

    pub(in crate::lease) fn places(&self) -> Places {
        Places { rooms: self.clone(), unanswered: Arc::default() }
    }
}

// === impl Places ===

impl Places {
    /// Waits for the place of the next call. Cancel-safe: a caller that gives up leaves nothing behind.
    pub(crate) fn wait(&self) -> BoxFuture<'static, Place> {
        let Rooms([usual, once, hanging]) = &self.rooms;
        let room = match self.unanswered.load(Ordering::Relaxed) {
            0 => usual,
            1 => once,
            _ => hanging,
        };
        // No code closes the semaphore, so there is always a permit in the end.
        room.clone().acquire_owned().map(|permit| Place(permit.ok())).boxed()
    }

    pub(in crate::lease) fn answered(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    pub(in crate::lease) fn unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }
}
