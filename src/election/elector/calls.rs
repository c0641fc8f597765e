//! One lease call: it has a time limit, the watch is read meanwhile, and its answer is taken in.

use super::Elector;
use crate::{
    defect,
    election::{candidacy::Decision, hooks::LeaseCall},
    lease::{Claim, ErrLock, ErrLockKind, LeaseRecord, Lock},
};
use futures_util::StreamExt;
use std::{future::Future, pin::pin, time::Duration};
use tokio::time::{sleep, timeout};

/// How many conflicts are no failures. Standbys that stop together with the leader write while it releases the lease, and
/// so do the followers that take their places.
const CONFLICTS: u32 = 8;

impl<L: Lock> Elector<L> {
    /// Reads the lease and takes in the answer. Returns false if the call failed.
    pub(super) async fn read(&mut self) -> bool {
        let before = self.candidacy.version().map(str::to_owned);
        let lock = self.lock.clone();
        match self.call(LeaseCall::Read, async move { lock.get().await }).await {
            Ok(record) => {
                let now = self.leadership.now();
                self.candidacy.observe_read(record, before.as_deref(), now);
                self.act_on_news();
                let waits =
                    matches!(self.candidacy.decide(now, false), Decision::WaitUntil(_) | Decision::Await);
                // A read between two failing writes is not a success.
                if waits || !self.candidacy.contact.is_failing() {
                    self.worked(LeaseCall::Read);
                }
                true
            }
            Err(error) => {
                self.failed(LeaseCall::Read, &error);
                false
            }
        }
    }

    /// Writes `claim` over the lease as last seen (rule S6), or creates the lease. Takes in the answer. Returns false
    /// if the call failed.
    pub(super) async fn write(&mut self, what: LeaseCall, claim: Claim) -> bool {
        let (lock, seen) = (self.lock.clone(), self.candidacy.record().cloned());
        let exists = seen.is_some();
        let before = self.candidacy.version().map(str::to_owned);
        let write = async move {
            let Some(seen) = &seen else { return lock.create(&claim).await };
            let record = lock.update(seen, &claim).await?;
            if record.resource_version() == seen.resource_version() || record.is_older_than(seen) {
                // The API server wrote nothing, so the other candidates have seen nothing (rule S6).
                return Err(refused("the write changed nothing in the lease"));
            }
            Ok(record)
        };
        let outcome = self.call(what, write).await;
        let acquires = what == LeaseCall::Acquire;
        if acquires && outcome.as_ref().map_or_else(|error| is_certain(error.kind()), |_| true) {
            self.candidacy.claim_is_settled();
        }
        match outcome {
            Ok(record) => {
                let version = record.version();
                self.candidacy.observe(record, self.leadership.now());
                self.act_on_news();
                // The watch may already have shown a successor or a deletion. Otherwise, for example, a webhook has
                // changed the claim.
                let changed = |known: &LeaseRecord| known.version() <= version;
                if acquires && !self.candidacy.is_current() && self.candidacy.record().is_some_and(changed) {
                    self.failed(what, &refused("the lease does not hold what this candidate wrote"));
                    return false;
                }
                self.worked(what);
                return true;
            }
            // There is nothing to update: the lease was deleted (rule S8).
            Err(error) if exists && error.kind() == ErrLockKind::NotFound => {
                self.candidacy.observe_absence(None, self.leadership.now());
                self.act_on_news();
            }
            Err(error) if acquires && error.kind() == ErrLockKind::Conflict => {
                self.lost_the_race(before.as_deref(), &error);
            }
            Err(error) => self.failed(what, &error),
        }
        false
    }

    /// Makes one call within its own time. After a timeout, it asks for a fresh connection (rule S9).
    pub(super) async fn call<T>(
        &mut self,
        what: LeaseCall,
        call: impl Future<Output = Result<T, ErrLock>>,
    ) -> Result<T, ErrLock> {
        let patience = self.profile.timing.call_timeout();
        let sent = self.leadership.now();
        self.candidacy.contact.begin(sent);
        let outcome = self.hearing(timeout(patience, call)).await.unwrap_or_else(|_| {
            if let Some(why) = self.lock.reconnect() {
                self.fresh.raise("no fresh client", &why, self.leadership.now());
            }
            Err(ErrLock::timeout(patience))
        });
        let took = self.leadership.now().saturating_since(sent);
        if outcome.is_ok() {
            self.candidacy.crowd.answered(took);
        }
        if let Some(hook) = &self.profile.hooks.lease {
            hook.called(what, took, outcome.as_ref().map(drop).map_err(ErrLock::kind));
        }
        outcome
    }

    pub(super) async fn observe_for(&mut self, time: Duration) {
        self.hearing(sleep(time)).await;
    }

    /// Runs `future` to its end, and acts on a theft or a deletion meanwhile (rules S7 and S8).
    pub(super) async fn hearing<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                // Many events must not delay the call.
                biased;
                output = &mut future => return output,
                Some(news) = self.lease_watch.next() => self.on_watch_news(news),
                Some(ended) = self.holder_watch.next() => self.candidacy.early.ended(ended),
            }
        }
    }

    /// Another candidate was faster. `before` is the version that this one tried to swap. The watch shows who it was.
    fn lost_the_race(&mut self, before: Option<&str>, error: &ErrLock) {
        if !self.candidacy.contact.is_watching() {
            return self.failed(LeaseCall::Acquire, error);
        }
        note_faster(LeaseCall::Acquire, error);
        if self.candidacy.version() == before {
            self.candidacy.contact.lose_a_race(self.leadership.now());
        }
    }

    /// Acts on a failed call.
    fn failed(&mut self, what: LeaseCall, error: &ErrLock) {
        let (kind, call) = (error.kind(), what.as_str());
        if kind == ErrLockKind::Conflict {
            note_faster(what, error);
            self.conflicts += 1;
        } else {
            let (pause, advice) = kind.advice().map_or(("", ""), |advice| ("; ", advice));
            let details = format_args!("{call}: {error}{pause}{advice}");
            self.calls.raise(kind.as_str(), &details, self.leadership.now());
            self.note_trouble();
        }
        if kind != ErrLockKind::Conflict || self.conflicts > CONFLICTS {
            self.failed += 1;
        }
        self.candidacy.contact.fail(kind, self.grant.is_some(), self.leadership.now());
    }

    /// Acts on a successful call.
    fn worked(&mut self, what: LeaseCall) {
        let recovered = self.candidacy.contact.recover(what, self.leadership.now());
        if recovered && !self.candidacy.contact.is_watching() {
            // If calls work again, the watch may too, but its pauses have grown meanwhile.
            self.restart_watch();
        }
        self.calls.settle(self.leadership.now());
        self.fresh.settle(self.leadership.now());
        self.note_trouble();
    }
}

fn note_faster(what: LeaseCall, error: &ErrLock) {
    tracing::debug!(call = what.as_str(), "another candidate was faster: {error}");
}

fn refused(what: &'static str) -> ErrLock {
    ErrLock::new(ErrLockKind::Refused, what)
}

/// Whether a write with this error was certainly not carried out.
fn is_certain(kind: ErrLockKind) -> bool {
    let conflict = kind == ErrLockKind::Conflict && defect::is_back("conflict-is-certain");
    conflict || matches!(kind, ErrLockKind::Unauthorized | ErrLockKind::Forbidden | ErrLockKind::NotFound)
}
