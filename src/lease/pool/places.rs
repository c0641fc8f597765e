//! How many calls of one pool are under way at once. Each needs a connection, and the API server answers each.

use futures_util::{FutureExt, future::BoxFuture};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls there are at once: of leases whose last call was answered, of those of which one call was not, and of those of
/// which more in a row were not. The others wait. So leases that hang delay no others, not even one of which a single call was
/// lost, and an API server that answers none is not asked by all at once.
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

/// The place of one call. Dropping it gives it to the next one.
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
    /// Waits for the place of the next call. Cancel-safe: who gives up waiting leaves nothing behind.
    pub(crate) fn wait(&self) -> BoxFuture<'static, Place> {
        let Rooms([usual, once, hanging]) = &self.rooms;
        let room = match self.unanswered.load(Ordering::Relaxed) {
            0 => usual,
            1 => once,
            _ => hanging,
        };
        // Nobody closes the semaphore.
        room.clone().acquire_owned().map(|permit| Place(permit.ok())).boxed()
    }

    pub(in crate::lease) fn answered(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    pub(in crate::lease) fn unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }
}
