//! What a candidate does: read, acquire, renew, and give up.

use super::{Doubt, Elector};
use crate::{
    election::candidacy::Decision,
    lease::{Lock, LockError, LockErrorKind},
};
use std::time::Duration;

/// Candidates that see a lease released spread over this time, and look again, so that a crowd does not write at once.
const SPREAD: Duration = Duration::from_millis(4);
/// Attempts at giving the lease up; after that it runs out by itself.
const RELEASE_ATTEMPTS: u32 = 3;

impl<L: Lock> Elector<L> {
    /// Reads the lease. False when that failed.
    pub(super) async fn read(&mut self) -> bool {
        let before = self.candidacy.version().map(str::to_owned);
        let lock = self.lock.clone();
        match self.call(async move { lock.get().await }).await {
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
                self.failed("read", &error);
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
            Decision::Create | Decision::Take => {}
            // The watch had not told of what the read has shown.
            Decision::Read | Decision::Renew | Decision::WaitUntil(_) => {
                return self.restart_a_silent_watch();
            }
        }
        let seen = self.candidacy.record().cloned();
        let claim = self.candidacy.acquisition(wall_clock());
        // The deadline counts from before the call is sent (rule S1).
        let sent = self.leadership.now();
        let lock = self.lock.clone();
        let write = async move {
            match &seen {
                Some(seen) => lock.update(seen, &claim).await,
                None => lock.create(&claim).await,
            }
        };
        match self.call(write).await {
            Ok(record) => {
                let term = record.term();
                self.know(record);
                // The watch may have shown a successor by now, or a webhook may have changed the claim.
                if !self.candidacy.is_current() {
                    let error = LockError::new(
                        LockErrorKind::Refused,
                        "what was claimed is not what stands in the lease",
                    );
                    return self.failed_to_write("acquire", &error);
                }
                self.worked();
                self.fall_out_of_step();
                self.pulse.beat(sent);
                let deadline = sent.saturating_add(self.timing.renew_deadline());
                // Too late means that the answer came after the deadline, or that this election is stopping.
                self.grant = self.leadership.grant(term, deadline).ok();
            }
            Err(error) => self.failed_to_write("acquire", &error),
        }
    }

    /// Renews the lease and moves the deadline on.
    pub(super) async fn renew(&mut self) {
        self.restart_a_silent_watch();
        let Some(seen) = self.candidacy.record().cloned() else {
            return;
        };
        let claim = self.candidacy.renewal(wall_clock());
        let sent = self.leadership.now();
        let lock = self.lock.clone();
        match self.call(async move { lock.update(&seen, &claim).await }).await {
            Ok(record) => {
                self.know(record);
                self.early = Duration::ZERO;
                self.worked();
                let deadline = sent.saturating_add(self.timing.renew_deadline());
                // A theft that the watch has shown meanwhile, or a deadline that has passed, stands.
                if self.grant.as_ref().is_some_and(|grant| grant.extend(deadline).is_ok()) {
                    self.pulse.beat(sent);
                }
            }
            // Nothing there to renew: it was deleted (rule S8).
            Err(error) if error.kind() == LockErrorKind::NotFound => self.know_gone(),
            Err(error) => self.failed_to_write("renew", &error),
        }
    }

    /// Gives the lease up if it is this candidate's (rule S5). True unless it may still stand in the lease.
    pub(super) async fn release(&mut self) -> bool {
        // Nothing to give up, whatever the API server has to say.
        if !self.candidacy.is_mine() && !self.unanswered {
            return true;
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
                return true;
            };
            let claim = self.candidacy.release(wall_clock());
            let lock = self.lock.clone();
            match self.call(async move { lock.update(&seen, &claim).await }).await {
                Ok(_) => return true,
                Err(error) if error.kind() == LockErrorKind::NotFound => return true,
                Err(error) => self.failed_to_write("release", &error),
            }
        }
        tracing::warn!("the lease was not released; it runs out by itself");
        false
    }
}

/// The wall clock, as the API writes `MicroTime`. For people only: nothing here reads such a time back.
fn wall_clock() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
