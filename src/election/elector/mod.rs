//! The loop: what is seen and what is due, call by call. The grantor lives here, so that the gate closes when
//! this task ends, even by a panic (rule S10).
//!
//! `candidacy` decides what is next, after each wait anew; `calls` makes one lease call, `steps` are the things that a
//! candidate does, `news` is what follows from what was heard of the lease.

mod calls;
mod news;
mod steps;

use super::{
    candidacy::{Call, Candidacy, Inputs, Next, Taking, Task},
    ended::LeaseEnd,
    hooks::LeaseHook,
    lease_watch::{LeaseWatch, watch_lease},
    preemption::Priority,
    pulse::Pulse,
};
use crate::{
    api::Complaint,
    leadership::{Grant, Grantor, Leadership, Loss},
    lease::{Identity, LeaseTiming, Lock, ReleaseLock},
};
use futures_util::StreamExt;
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// Longer than any deadline, at which the writes that are waited for are cut off.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

/// What the election is told to do.
#[derive(Clone, Debug)]
pub(super) enum Orders {
    /// Contend, lead, contend again.
    Contend,
    /// Renew what is held, acquire nothing more: writes are being drained.
    Hold,
    /// Give the lease up, say what has become of it, and acquire nothing more.
    StandDown(mpsc::Sender<LeaseEnd>),
    /// Give the lease up and end.
    Release,
}

pub(super) struct Elector<L: Lock> {
    lock: Arc<ReleaseLock<L>>,
    grantor: Grantor,
    leadership: Leadership,
    timing: LeaseTiming,
    pulse: Arc<Pulse>,
    hook: Option<Arc<dyn LeaseHook>>,
    orders: watch::Receiver<Orders>,
    candidacy: Candidacy,
    grant: Option<Grant>,
    lease_watch: LeaseWatch,
    /// Calls that have failed since the order to give the lease up.
    failed: u32,
    calls: Complaint,
    watch: Complaint,
    oddity: Complaint,
    peace: Complaint,
}

impl<L: Lock> Elector<L> {
    pub(super) fn new(
        lock: L,
        grantor: Grantor,
        (identity, timing, priority): (Identity, LeaseTiming, Option<Priority>),
        pulse: Arc<Pulse>,
        hook: Option<Arc<dyn LeaseHook>>,
        orders: watch::Receiver<Orders>,
    ) -> Self {
        let lock = Arc::new(ReleaseLock::new(lock, &grantor));
        Self {
            lease_watch: watch_lease(lock.clone(), timing),
            lock,
            leadership: grantor.leadership(),
            grantor,
            timing,
            pulse,
            hook,
            orders,
            candidacy: Candidacy::new(identity, timing, priority),
            grant: None,
            failed: 0,
            calls: Complaint::new("lease calls fail"),
            watch: Complaint::new("the lease cannot be watched; it is polled"),
            oddity: Complaint::new("the lease makes no sense"),
            peace: Complaint::new("candidates preempt each other in turn; let their priorities agree"),
        }
    }

    /// Runs until it is ordered to release.
    pub(super) async fn run(mut self) -> LeaseEnd {
        loop {
            let order = self.orders.borrow_and_update().clone();
            self.check_grant();
            // Asked once, so that a write which ends from here on also ends the wait below.
            let writing = self.leadership.writes_under_way() > 0;
            self.check_drain(writing);
            self.tell_vacancy();
            let inputs = self.inputs(&order, writing);
            match self.candidacy.next(&inputs) {
                Next::Call(call) => self.make(call).await,
                Next::GivenUp(outcome) => {
                    if let Some(stopped) = self.given_up(&order, outcome) {
                        return stopped;
                    }
                }
                Next::Wait(until) => {
                    let leadership = self.leadership.clone();
                    tokio::select! {
                        biased;
                        changed = self.orders.changed() => if changed.is_err() { return LeaseEnd::LeftToExpire },
                        _ = leadership.drain(FOR_EVER), if writing && !leadership.can_write() => {}
                        () = leadership.sleep_until(until) => {}
                        Some(news) = self.lease_watch.next() => self.on_watch_news(news),
                    }
                }
            }
        }
    }

    fn inputs(&mut self, order: &Orders, writing: bool) -> Inputs {
        let task = match order {
            Orders::Contend => Task::Contend,
            Orders::Hold => Task::Hold,
            // The one who gave the order has been told what has become of it, or no longer waits for that.
            Orders::StandDown(done) if done.capacity() == 0 || done.is_closed() => Task::StayAway,
            Orders::StandDown(_) | Orders::Release => Task::GiveUp { failed: self.failed },
        };
        if !matches!(task, Task::GiveUp { .. }) {
            self.failed = 0;
        }
        Inputs {
            now: self.leadership.now(),
            task,
            leads: self.grant.is_some(),
            renewed: self.pulse.renewed(),
            settles_at: self.leadership.settles_at(writing, self.timing.tolerated_skew()),
        }
    }

    async fn make(&mut self, call: Call) {
        match call {
            Call::Read => drop(self.read().await),
            Call::Acquire => self.acquire().await,
            Call::Renew => self.renew().await,
            Call::Acknowledge => self.acknowledge().await,
            Call::Release => self.release().await,
        }
    }

    /// The end of a release, and of this election if it was told to end.
    fn given_up(&mut self, order: &Orders, outcome: Result<(), &'static str>) -> Option<LeaseEnd> {
        let stopped = match outcome {
            Ok(()) => LeaseEnd::Released,
            Err(reason) => {
                tracing::warn!(reason, "the lease was not released; it runs out by itself");
                LeaseEnd::LeftToExpire
            }
        };
        let Orders::StandDown(done) = order else {
            self.pulse.end(Ok(stopped));
            return Some(stopped);
        };
        // What could not be given up is not led in any more, and on purpose not renewed.
        self.lose(Loss::Abandoned);
        self.pulse.rest();
        // No error: the one answer that is waited for fits.
        let _ = done.try_send(stopped);
        None
    }

    /// Whether it is told to contend at this moment.
    fn contends(&self) -> bool {
        matches!(*self.orders.borrow(), Orders::Contend)
    }

    /// Lets go of a grant whose deadline has passed.
    fn check_grant(&mut self) {
        if self.grant.as_ref().is_some_and(|grant| !grant.is_valid()) {
            self.lose(Loss::Expired);
        }
    }

    /// Ends a preempted term whose writes have ended.
    fn check_drain(&mut self, writing: bool) {
        if self.candidacy.own.is_draining() && !writing {
            self.lose(Loss::Taken);
            self.candidacy.own.drained();
        }
    }

    /// Tells whoever asks what is in the way; a watch that does not stand is not.
    fn note_trouble(&self) {
        self.grantor.note_trouble(self.calls.text().or(self.oddity.text()).cloned());
    }

    fn tell_vacancy(&self) {
        if let Some(hook) = &self.hook {
            let now = self.leadership.now();
            hook.vacant(self.grant.is_none() && self.candidacy.may_take(now) == Some(Taking::Free), now);
        }
    }

    fn lose(&mut self, loss: Loss) {
        if let Some(grant) = self.grant.take() {
            grant.end(loss);
        }
    }
}
