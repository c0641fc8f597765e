//! Whether a term has been lost since one last asked.

use super::{Inner, Leadership, Loss};
use std::sync::Arc;
use tokio::sync::futures::OwnedNotified;

/// Remembers which terms had ended when it last looked; it counts no write.
#[derive(Debug)]
pub(crate) struct Lapse {
    inner: Arc<Inner>,
    /// The number of the last grant that is known to have ended.
    seen: u64,
}

impl Lapse {
    pub(crate) fn new(leadership: &Leadership) -> Self {
        let inner = leadership.inner.clone();
        let seen = inner.last_ended();
        Self { inner, seen }
    }

    /// Whether a term has ended since the last call, other than by one release in good order: its writes had been
    /// drained. A deadline that has passed counts, noticed or not (rule S1).
    pub(crate) fn occurred(&mut self) -> bool {
        let ended = self.inner.last_ended();
        let count = ended - self.seen;
        self.seen = ended;
        count > 1 || count == 1 && self.inner.loss_of(ended) != Loss::Released
    }

    /// A future that resolves when a term ends. Cancel-safe.
    pub(crate) fn ended(&self) -> OwnedNotified {
        self.inner.ended.clone().notified_owned()
    }
}
