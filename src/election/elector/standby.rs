//! Joins and leaves the standbys in the lease of another candidate. A failure is no trouble: the list is a hint.

use super::Elector;
use crate::{
    election::hooks::LeaseCall,
    lease::{Claim, ErrLockKind, Lock},
};

impl<L: Lock> Elector<L> {
    /// Asks for a place among the standbys. It reads first, since in a large crowd another candidate may just have
    /// taken the place.
    pub(super) async fn join(&mut self) {
        self.candidacy.tries_to_join(self.leadership.now());
        if !self.read().await || !self.contends() {
            return;
        }
        if let Some(claim) = self.candidacy.joining(self.leadership.now()) {
            let _ = self.annotate(LeaseCall::Join, claim).await;
        }
    }

    /// Gives the place back. It tries once more if the holder has renewed the lease meanwhile.
    pub(super) async fn leave(&mut self) {
        self.candidacy.has_left();
        let conflict = Err(ErrLockKind::Conflict);
        if self.write_leave().await == conflict && self.read().await {
            let _ = self.write_leave().await;
        }
    }

    async fn write_leave(&mut self) -> Result<(), ErrLockKind> {
        let Some(claim) = self.candidacy.leaving() else { return Ok(()) };
        self.annotate(LeaseCall::Leave, claim).await
    }

    async fn annotate(&mut self, what: LeaseCall, claim: Claim) -> Result<(), ErrLockKind> {
        let (lock, seen) = (self.lock.clone(), self.candidacy.record().cloned());
        let Some(seen) = seen else { return Ok(()) };
        match self.call(what, async move { lock.update(&seen, &claim).await }).await {
            Ok(record) => {
                self.candidacy.observe(record, self.leadership.now());
                self.act_on_news();
                Ok(())
            }
            Err(error) => {
                tracing::debug!(call = what.as_str(), "the standbys in the lease stay as they are: {error}");
                Err(error.kind())
            }
        }
    }
}
