//! What a candidate does: read, acquire, renew, and give up.

use super::{Doubt, Elector};
use crate::{
    election::{candidacy::Decision, ended::Stopped, hooks::LeaseCall},
    leadership::{Loss, Moment, Term},
    lease::{Lock, LockError, LockErrorKind},
};
use std::time::Duration;
use tokio::sync::mpsc;

/// Candidates that see a lease released spread over this time, and look again, so that a crowd does not write at once.
const SPREAD: Duration = Duration::from_millis(4);
/// Attempts at giving the lease up; after that it runs out by itself.
const RELEASE_ATTEMPTS: u32 = 3;

impl<L: Lock> Elector<L> {
    /// Reads the lease. False when that failed.
    pub(super) async fn read(&mut self) -> bool {
        let before = self.candidacy.version().map(str::to_owned);
        let lock = self.lock.clone();
        match self.call(LeaseCall::Read, async move { lock.get().await }).await {
            Ok(record) => {
                self.unanswered = false;
                self.know_read(record, before.as_deref());
                // A read between two writes that fail is no success.
                let decision = self.candidacy.decide(self.leadership.now(), self.grant.is_some());
                if self.failures == 0 || matches!(decision, Decision::WaitUntil(_)) {
                    self.worked();
                }
                true
            }
            Err(error) => {
                self.failed(LeaseCall::Read, &error);
                false
            }
        }
    }

    /// Reads the lease because the watch has been silent for long, and starts the watch afresh if there was news.
    pub(super) async fn verify(&mut self) {
        if self.read().await {
            self.restart_a_silent_watch();
        }
    }

    /// Takes the lease if it is still there to be taken: reads it, and swaps on the version that was read (rule S6).
    pub(super) async fn acquire(&mut self) {
        self.observe_for(SPREAD.mul_f64(fastrand::f64())).await;
        if !self.read().await {
            return;
        }
        match self.candidacy.decide(self.leadership.now(), false) {
            // Told otherwise meanwhile.
            _ if !self.contends() => return,
            Decision::Create | Decision::Take => {}
            Decision::Preempt => self.announce_preemption(),
            // The watch had not told of what the read has shown.
            Decision::Read
            | Decision::Renew
            | Decision::Hold(_)
            | Decision::Open
            | Decision::WaitUntil(_) => {
                return self.restart_a_silent_watch();
            }
        }
        let seen = self.candidacy.record().cloned();
        // The deadline counts from before the call is sent (rule S1).
        let sent = self.leadership.now();
        let kept = self.candidacy.is_mine();
        let claim = self.candidacy.acquisition(sent, wall_clock());
        let lock = self.lock.clone();
        let write = async move {
            match &seen {
                Some(seen) => lock.update(seen, &claim).await,
                None => lock.create(&claim).await,
            }
        };
        match self.call(LeaseCall::Acquire, write).await {
            Ok(record) => {
                let term = record.term();
                self.know(record);
                // The watch may have shown a successor by now, or a webhook may have changed the claim.
                if !self.candidacy.is_current() {
                    let error = LockError::new(
                        LockErrorKind::Refused,
                        "what was claimed is not what stands in the lease",
                    );
                    return self.failed_to_write(LeaseCall::Acquire, &error);
                }
                self.worked();
                self.fall_out_of_step();
                self.pulse.beat(sent);
                if let Decision::Hold(until) = self.candidacy.decide(self.leadership.now(), false) {
                    return self.wait_for_the_overtaken(until);
                }
                self.lead(term, sent);
                // What was this candidate's all the while is not cut short: old work may count on it.
                if !kept {
                    self.release_what_nobody_wants().await;
                }
            }
            Err(error) => self.failed_to_write(LeaseCall::Acquire, &error),
        }
    }

    /// Opens the gate, by a write that was sent at `sent`.
    fn lead(&mut self, term: Term, sent: Moment) {
        self.candidacy.opened();
        let deadline = sent.saturating_add(self.timing.renew_deadline());
        // Too late means that the answer came after the deadline, or that this election stops or stands down.
        self.grant = self.leadership.grant(term, deadline).ok();
    }

    /// Gives up what was acquired while this election was told to acquire nothing.
    async fn release_what_nobody_wants(&mut self) {
        if self.grant.is_none() && !self.contends() {
            // On purpose not renewed, given up or not.
            self.release().await;
            self.pulse.rest();
        }
    }

    /// Renews the lease and moves the deadline on, or opens the gate if nobody is waited for any more.
    pub(super) async fn renew(&mut self) {
        // After a failure the lease may have been read this very moment.
        if self.failures == 0 {
            self.restart_a_silent_watch();
        }
        let Some(seen) = self.candidacy.record().cloned() else {
            return;
        };
        let sent = self.leadership.now();
        let decision = self.candidacy.decide(sent, self.grant.is_some());
        let claim = self.candidacy.renewal(sent, wall_clock());
        let lock = self.lock.clone();
        match self.call(LeaseCall::Renew, async move { lock.update(&seen, &claim).await }).await {
            Ok(record) => {
                let term = record.term();
                self.know(record);
                self.early = Duration::ZERO;
                self.worked();
                if matches!(decision, Decision::Hold(_) | Decision::Open) {
                    if !self.candidacy.is_current() {
                        return;
                    }
                    self.pulse.beat(sent);
                    if decision == Decision::Open {
                        self.lead(term, sent);
                        self.release_what_nobody_wants().await;
                    }
                    return;
                }
                let deadline = sent.saturating_add(self.timing.renew_deadline());
                // A theft that the watch has shown meanwhile, or a deadline that has passed, stands.
                if self.grant.as_ref().is_some_and(|grant| grant.extend(deadline).is_ok()) {
                    self.pulse.beat(sent);
                }
            }
            // Nothing there to renew: it was deleted (rule S8).
            Err(error) if error.kind() == LockErrorKind::NotFound => self.know_gone(),
            Err(error) => self.failed_to_write(LeaseCall::Renew, &error),
        }
    }

    /// Gives the lease up for now, and says what has become of it, once.
    pub(super) async fn stand_down(&mut self, done: mpsc::Sender<Stopped>) {
        if done.is_closed() {
            return;
        }
        let stopped = self.release().await;
        // What could not be given up is not led in any more, and on purpose not renewed.
        self.lose(Loss::Abandoned);
        self.pulse.rest();
        // No error: the one answer that is waited for fits.
        let _ = done.try_send(stopped);
    }

    /// Gives the lease up if it is this candidate's (rule S5).
    pub(super) async fn release(&mut self) -> Stopped {
        self.acknowledge_before_the_end().await;
        // Nothing to give up, whatever the API server has to say.
        if !self.candidacy.is_mine() && !self.unanswered {
            return Stopped::Released;
        }
        for attempt in 0..RELEASE_ATTEMPTS {
            if attempt > 0 {
                self.observe_for(self.not_before.saturating_since(self.leadership.now())).await;
            }
            if (self.doubt != Doubt::None || self.unanswered) && !self.read().await {
                continue;
            }
            // Holder *and* term: a late release must not erase a successor.
            let Some(seen) = self.candidacy.record().filter(|_| self.candidacy.is_mine()).cloned() else {
                return Stopped::Released;
            };
            if self.candidacy.waits(self.leadership.now()) {
                tracing::warn!(
                    "the lease was not released: its former holder may still be writing; it runs out by itself"
                );
                return Stopped::LeftToExpire;
            }
            let claim = self.candidacy.release(wall_clock());
            let lock = self.lock.clone();
            match self.call(LeaseCall::Release, async move { lock.update(&seen, &claim).await }).await {
                Ok(record) => {
                    self.lose(Loss::Released);
                    self.know(record);
                    self.worked();
                    return Stopped::Released;
                }
                Err(error) if error.kind() == LockErrorKind::NotFound => {
                    self.know_gone();
                    return Stopped::Released;
                }
                Err(error) => self.failed_to_write(LeaseCall::Release, &error),
            }
        }
        tracing::warn!("the lease was not released; it runs out by itself");
        Stopped::LeftToExpire
    }
}

/// The wall clock, as the API writes `MicroTime`. For people only: nothing here reads such a time back.
fn wall_clock() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
