//! The lock that lowers the flag before the lease is given up.

use super::{Claim, LeaseName, LeaseRecord, Lock, LockError};
use crate::leadership::{Leadership, Loss};

/// Wraps a [`Lock`]: an update that empties the holder closes the gate *before* it is sent, and whatever becomes of it
/// (rule S3). Everything else passes as it is.
#[derive(Clone, Debug)]
pub struct ReleaseLock<L> {
    inner: L,
    leadership: Leadership,
}

impl<L> ReleaseLock<L> {
    /// Ties `inner` to `leadership`.
    pub const fn new(inner: L, leadership: Leadership) -> Self {
        Self { inner, leadership }
    }
}

impl<L: Lock> Lock for ReleaseLock<L> {
    type Events = L::Events;

    fn name(&self) -> &LeaseName {
        self.inner.name()
    }

    async fn get(&self) -> Result<Option<LeaseRecord>, LockError> {
        self.inner.get().await
    }

    async fn create(&self, claim: &Claim) -> Result<LeaseRecord, LockError> {
        self.inner.create(claim).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &Claim) -> Result<LeaseRecord, LockError> {
        if claim.holder.is_empty() {
            self.leadership.revoke(Loss::Released);
        }
        self.inner.update(seen, claim).await
    }

    async fn watch(&self) -> Result<Self::Events, LockError> {
        self.inner.watch().await
    }

    async fn reconnect(&self) {
        self.inner.reconnect().await;
    }
}
