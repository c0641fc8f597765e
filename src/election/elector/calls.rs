//! One lease call: bounded, and with an ear on the watch.

use super::Elector;
use crate::{
    election::hooks::LeaseCall,
    lease::{Claim, ErrLock, ErrLockKind, LeaseRecord, Lock},
};
use futures_util::StreamExt;
use std::{future::Future, pin::pin, time::Duration};
use tokio::time::{sleep, timeout};

impl<L: Lock> Elector<L> {
    /// Makes one call within its own time, and sees to a fresh connection after one that took longer (rule S9).
    pub(super) async fn call<T>(
        &mut self,
        what: LeaseCall,
        call: impl Future<Output = Result<T, ErrLock>>,
    ) -> Result<T, ErrLock> {
        let patience = self.timing.call_timeout();
        let sent = self.leadership.now();
        self.candidacy.contact.begin(sent);
        let outcome = self.hearing(timeout(patience, call)).await.unwrap_or_else(|_| {
            self.lock.reconnect();
            Err(ErrLock::timeout(patience))
        });
        if let Some(hook) = &self.hook {
            let took = self.leadership.now().saturating_since(sent);
            hook.called(what, took, outcome.as_ref().map(drop).map_err(ErrLock::kind));
        }
        outcome
    }

    /// Writes `claim` over `seen`, the lease as it is known to be.
    pub(super) async fn swap(
        &mut self,
        what: LeaseCall,
        seen: &LeaseRecord,
        claim: &Claim,
    ) -> Result<LeaseRecord, ErrLock> {
        let lock = self.lock.clone();
        let record = self.call(what, async move { lock.update(seen, claim).await }).await?;
        if record.resource_version() == seen.resource_version() {
            // Nothing was written: the others have seen nothing (rule S6).
            return Err(ErrLock::new(ErrLockKind::Refused, "the write has changed nothing in the lease"));
        }
        Ok(record)
    }

    pub(super) async fn observe_for(&mut self, time: Duration) {
        self.hearing(sleep(time)).await;
    }

    /// Drives `future` to its end, and hears of theft and deletion meanwhile (rules S7 and S8).
    async fn hearing<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                // A flood of events must not starve the call.
                biased;
                output = &mut future => return output,
                Some(news) = self.lease_watch.next() => self.on_watch_news(news),
            }
        }
    }

    /// What follows from a call that failed.
    pub(super) fn failed(&mut self, call: LeaseCall, error: &ErrLock) {
        let kind = error.kind();
        if kind == ErrLockKind::Conflict {
            tracing::debug!(call = call.as_str(), "somebody else was faster: {error}");
        } else {
            let call = call.as_str();
            let (pause, advice) = kind.advice().map_or(("", ""), |advice| ("; ", advice));
            self.calls.raise(kind.as_str(), &format_args!("{call}: {error}{pause}{advice}"));
            self.note_trouble();
        }
        self.failed += 1;
        self.candidacy.contact.fail(kind, self.grant.is_some(), self.leadership.now());
    }

    /// What follows from a call that worked.
    pub(super) fn worked(&mut self) {
        if self.candidacy.contact.recover(self.leadership.now()) {
            // Trouble that has passed for calls has passed for the watch, whose pauses have grown meanwhile.
            self.restart_a_missing_watch();
            self.candidacy.contact.fall_out_of_step();
        }
        self.calls.settle();
        self.note_trouble();
    }
}
