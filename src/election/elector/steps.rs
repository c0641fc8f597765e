//! What a candidate does: read, acquire, renew, acknowledge, and give up.

use super::Elector;
use crate::{
    election::{candidacy::Taking, hooks::LeaseCall, preemption::OwnTerm, wall_clock},
    leadership::{Loss, Moment, Term},
    lease::{ErrLock, ErrLockKind, LeaseRecord, Lock},
};
use std::time::Duration;

/// Candidates that see a lease released spread over this time, and look again, so that a crowd does not write at once.
const SPREAD: Duration = Duration::from_millis(4);

impl<L: Lock> Elector<L> {
    /// Reads the lease. False when that failed.
    pub(super) async fn read(&mut self) -> bool {
        let before = self.candidacy.version().map(str::to_owned);
        let in_doubt = self.candidacy.contact.is_in_doubt();
        let lock = self.lock.clone();
        match self.call(LeaseCall::Read, async move { lock.get().await }).await {
            Ok(record) => {
                self.know_read(record, before.as_deref());
                // A read between two writes that fail is no success.
                if !self.candidacy.contact.is_failing()
                    || self.candidacy.waits_for_a_holder(self.leadership.now())
                {
                    self.worked();
                }
                if !in_doubt {
                    // Without a reason for this read, the watch should have told of what it has shown.
                    self.restart_a_silent_watch();
                }
                true
            }
            Err(error) => {
                self.failed(LeaseCall::Read, &error);
                false
            }
        }
    }

    /// Takes the lease if it is still there to be taken: reads it, and swaps on the version that was read (rule S6).
    pub(super) async fn acquire(&mut self) {
        self.observe_for(SPREAD.mul_f64(fastrand::f64())).await;
        if !self.read().await || !self.contends() {
            return;
        }
        // The watch may not have told of what the read has shown.
        let Some(taking) = self.candidacy.may_take(self.leadership.now()) else { return };
        if taking == Taking::Preempting {
            self.announce_preemption();
        }
        let seen = self.candidacy.record().cloned();
        // The deadline counts from before the call is sent (rule S1).
        let sent = self.leadership.now();
        let claim = self.candidacy.acquisition(sent, wall_clock::now());
        let outcome = if let Some(seen) = &seen {
            self.swap(LeaseCall::Acquire, seen, &claim).await
        } else {
            let lock = self.lock.clone();
            self.call(LeaseCall::Acquire, async move { lock.create(&claim).await }).await
        };
        match outcome {
            Ok(record) => self.acquired(record, sent),
            Err(error) => {
                if is_certain(error.kind()) {
                    self.candidacy.claim_is_settled();
                }
                self.failed(LeaseCall::Acquire, &error);
            }
        }
    }

    fn acquired(&mut self, record: LeaseRecord, sent: Moment) {
        let (term, version) = (record.term(), record.version());
        self.candidacy.claim_is_settled();
        self.know(record);
        if !self.candidacy.is_current() {
            // The watch may have shown a successor by now, or a deletion. Otherwise a webhook has changed the claim, say.
            if self.candidacy.record().is_some_and(|record| record.version() <= version) {
                let what = "what was claimed is not what stands in the lease";
                self.failed(LeaseCall::Acquire, &ErrLock::new(ErrLockKind::Refused, what));
            }
            return;
        }
        self.worked();
        self.candidacy.contact.fall_out_of_step();
        self.pulse.beat(sent);
        match self.candidacy.holds_back_until(self.leadership.now()) {
            Some(until) => {
                let at_most = until.saturating_since(self.leadership.now());
                tracing::info!(
                    ?at_most,
                    "the lease is taken; writes wait for the end of the former holder's"
                );
            }
            None => self.lead(term, sent),
        }
    }

    /// Opens the gate, by a write that was sent at `sent`; not if it was told otherwise meanwhile.
    fn lead(&mut self, term: Term, sent: Moment) {
        if self.contends() {
            let deadline = sent.saturating_add(self.timing.renew_deadline());
            // Too late means that the answer came after the deadline, or that this election stops or stands down.
            self.grant = self.grantor.grant(term.clone(), deadline).ok();
        }
        if self.grant.is_some() {
            self.candidacy.opened(term);
        }
    }

    /// Renews the lease and moves the deadline on, or opens the gate if nobody is waited for any more.
    pub(super) async fn renew(&mut self) {
        // After a failure the lease may have been read this very moment.
        if !self.candidacy.contact.is_failing() {
            self.restart_a_silent_watch();
        }
        let Some(seen) = self.candidacy.record().cloned() else {
            return;
        };
        let sent = self.leadership.now();
        let holds_back = self.grant.is_none() && self.candidacy.holds_back_until(sent).is_some();
        let claim = self.candidacy.renewal(sent, wall_clock::now());
        match self.swap(LeaseCall::Renew, &seen, &claim).await {
            Ok(record) => {
                let term = record.term();
                self.know(record);
                self.candidacy.contact.keep_step();
                self.worked();
                self.renewed(term, sent, holds_back);
            }
            // Nothing there to renew: it was deleted (rule S8).
            Err(error) if error.kind() == ErrLockKind::NotFound => self.know_gone(),
            Err(error) => self.failed(LeaseCall::Renew, &error),
        }
    }

    fn renewed(&mut self, term: Term, sent: Moment, holds_back: bool) {
        if !self.candidacy.is_current() {
            return;
        }
        let deadline = sent.saturating_add(self.timing.renew_deadline());
        match &self.grant {
            // A theft that the watch has shown meanwhile, or a deadline that has passed, stands.
            Some(grant) if grant.extend(deadline).is_err() => {}
            Some(_) => self.pulse.beat(sent),
            None => {
                self.pulse.beat(sent);
                if !holds_back {
                    self.lead(term, sent);
                }
            }
        }
    }

    /// Tells the candidate that has preempted this one that the writes of its term have ended.
    pub(super) async fn acknowledge(&mut self) {
        let Some(seen) = self.candidacy.record().cloned() else { return };
        let Some(claim) = seen.acknowledgement() else {
            // Nothing that this crate has written.
            self.candidacy.own = OwnTerm::None;
            return;
        };
        match self.swap(LeaseCall::Acknowledge, &seen, &claim).await {
            Ok(record) => {
                self.know(record);
                self.worked();
                tracing::info!("the preempting holder was told that the last write has ended");
            }
            Err(error) if error.kind() == ErrLockKind::NotFound => self.know_gone(),
            Err(error) => self.failed(LeaseCall::Acknowledge, &error),
        }
    }

    /// Gives the lease up, in its last known version (rule S5).
    pub(super) async fn release(&mut self) {
        let Some(seen) = self.candidacy.record().cloned() else { return };
        let claim = self.candidacy.release(wall_clock::now());
        match self.swap(LeaseCall::Release, &seen, &claim).await {
            Ok(record) => {
                self.lose(Loss::Released);
                self.know(record);
                self.worked();
            }
            Err(error) if error.kind() == ErrLockKind::NotFound => self.know_gone(),
            Err(error) => self.failed(LeaseCall::Release, &error),
        }
    }

    fn announce_preemption(&self) {
        let record = self.candidacy.record();
        let holder = record.and_then(LeaseRecord::holder);
        let holder_key = record.and_then(LeaseRecord::holder_key);
        tracing::info!(holder, holder_key, "preempting a live holder of lower precedence");
    }
}

/// Whether a write that failed so was certainly not carried out.
fn is_certain(kind: ErrLockKind) -> bool {
    matches!(kind, ErrLockKind::Unauthorized | ErrLockKind::Forbidden | ErrLockKind::NotFound)
}
