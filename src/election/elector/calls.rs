//! One lease call: bounded, and with an ear on the watch.

use super::{Doubt, Elector};
use crate::{
    election::{hooks::LeaseCall, observer::backoff},
    lease::{Lock, LockError, LockErrorKind},
};
use futures_util::StreamExt;
use std::{future::Future, pin::pin, time::Duration};
use tokio::time::{sleep, timeout};

impl<L: Lock> Elector<L> {
    /// Makes one call within its own time, and sees to a fresh connection after one that took longer (rule S9).
    pub(super) async fn call<T>(
        &mut self,
        what: LeaseCall,
        call: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        let patience = self.timing.call_timeout();
        self.last_call = self.leadership.now();
        // What happens from here on may be newer than the answer.
        self.doubt = Doubt::None;
        let outcome = self.hearing(timeout(patience, call)).await.unwrap_or_else(|_| {
            self.lock.reconnect();
            Err(LockError::timeout(patience))
        });
        if let Some(hook) = &self.hook {
            let took = self.leadership.now().saturating_since(self.last_call);
            hook.called(what, took, outcome.as_ref().map(drop).map_err(LockError::kind));
        }
        outcome
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
                Some(observed) = self.observer.next() => self.on_observed(observed),
            }
        }
    }

    /// What follows from a call that failed.
    pub(super) fn failed(&mut self, call: LeaseCall, error: &LockError) {
        let kind = error.kind();
        let pause = if kind == LockErrorKind::Conflict {
            // Losing a race is part of the game: look at once who won it, and slow down only if it goes on.
            tracing::debug!(call = call.as_str(), "somebody else was faster: {error}");
            self.doubt = Doubt::IsOld;
            if self.failures == 0 { Duration::ZERO } else { self.pause() }
        } else {
            let call = call.as_str();
            let (pause, advice) = kind.advice().map_or(("", ""), |advice| ("; ", advice));
            self.calls.raise(kind.as_str(), &format_args!("{call}: {error}{pause}{advice}"));
            self.note_trouble();
            self.doubt = self.doubt.max(Doubt::MayBeOld);
            self.pause()
        };
        self.failures = self.failures.saturating_add(1);
        self.not_before = self.leadership.now().saturating_add(pause);
    }

    /// The same for a write, which may have been carried out without an answer.
    pub(super) fn failed_to_write(&mut self, call: LeaseCall, error: &LockError) {
        let certain = [
            LockErrorKind::Conflict,
            LockErrorKind::Unauthorized,
            LockErrorKind::Forbidden,
            LockErrorKind::NotFound,
        ];
        self.unanswered |= !certain.contains(&error.kind());
        self.failed(call, error);
    }

    /// What follows from a call that worked.
    pub(super) fn worked(&mut self) {
        if self.failures > 0 {
            // Trouble that has passed for calls has passed for the watch, whose pauses have grown meanwhile.
            self.restart_a_missing_watch();
            self.fall_out_of_step();
        }
        self.failures = 0;
        self.not_before = self.leadership.now();
        self.calls.settle();
        self.note_trouble();
    }

    /// Elections that acquired, or came out of trouble, at one moment would renew together ever after: the next renewal
    /// comes early, by chance.
    pub(super) fn fall_out_of_step(&mut self) {
        self.early = self.timing.retry_period().mul_f64(0.5 * fastrand::f64());
    }

    /// A leader has a deadline and tries again soon; a candidate has time.
    fn pause(&self) -> Duration {
        let first = self.timing.pause();
        let longest = if self.grant.is_some() { first } else { self.timing.retry_period() };
        backoff(first, self.failures, longest)
    }
}
