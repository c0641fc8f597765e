//! The loop: it tells the machine what happens, and does what the machine says. It owns the grantor, so the gate closes
//! when this task ends, even by a panic (rule S10).

use super::{
    candidate::Profile,
    core::Order as Wanted,
    ended::LeaseEnd,
    lease_watch::{LeaseWatch, watch_lease},
    liveness::Orders,
    machine::{Call, GateChange, Machine, Order, Output, View},
    report::Report,
};
use crate::{
    leadership::{Grant, Grantor, Leadership, Loss, Moment},
    lease::{BoxLock, ErrLock, ErrLockKind, LeaseRecord, Lock, ReleaseLock, VettedLock, wall_clock},
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use std::{future::poll_fn, sync::Arc, task::Poll};
use tokio::{sync::watch, time::timeout};

type Answer = Result<Option<LeaseRecord>, ErrLock>;

pub(super) struct Elector {
    machine: Machine,
    lock: Arc<ReleaseLock<VettedLock<BoxLock>>>,
    /// The call under way.
    call: Option<BoxFuture<'static, Answer>>,
    grantor: Grantor,
    grant: Option<Grant>,
    orders: watch::Receiver<Orders>,
    report: Report,
}

impl Elector {
    pub(super) fn new(
        machine: Machine,
        lock: VettedLock<BoxLock>,
        grantor: Grantor,
        profile: Arc<Profile>,
    ) -> Self {
        Self {
            machine,
            lock: Arc::new(ReleaseLock::new(lock, &grantor)),
            call: None,
            grantor,
            grant: None,
            orders: profile.liveness.orders.subscribe(),
            report: Report::new(profile),
        }
    }

    /// Runs until it is dropped.
    pub(super) async fn run(mut self) {
        let leadership = self.grantor.leadership();
        let mut lease_watch = self.watch();
        loop {
            self.take_orders(leadership.now());
            let view = self.view(&leadership);
            self.report.tell(&self.machine, &view, &self.grantor);
            match self.machine.poll(&view, wall_clock::now) {
                Output::Gate(change) => self.change(change),
                Output::Call(call) => self.begin(call),
                Output::Rewatch => {
                    tracing::debug!("the watch of the lease is silent; restarting it");
                    lease_watch = self.watch();
                }
                Output::GivenUp(outcome) => self.given_up(outcome),
                Output::Wait(until) => {
                    let drains = view.writing && !view.is_open;
                    tokio::select! {
                        // Many events must not delay the call.
                        biased;
                        answer = answered(&mut self.call) => self.on_answer(answer, leadership.now()),
                        Ok(()) = self.orders.changed() => {}
                        // At the deadline the writes that are waited for are cut off.
                        () = leadership.idle(), if drains => {}
                        () = leadership.sleep_until(until) => {}
                        Some(news) = lease_watch.next() => {
                            self.report.watched(&news, leadership.now());
                            self.machine.watched(news, leadership.now());
                        }
                    }
                }
            }
        }
    }

    fn watch(&self) -> LeaseWatch {
        watch_lease(self.lock.clone(), self.report.profile.timing)
    }

    fn take_orders(&mut self, now: Moment) {
        let orders = self.orders.borrow_and_update();
        self.machine.order(match orders.order {
            Wanted::Contend => Order::Contend,
            Wanted::Hold => Order::Hold,
            Wanted::Stop if orders.left.is_none() => Order::GiveUp { failed: 0 },
            Wanted::Stop => Order::StayAway,
        });
        if orders.asked.as_ref().is_some_and(|term| self.machine.is_in(term)) {
            self.machine.give_way(now);
        }
    }

    fn view(&self, leadership: &Leadership) -> View {
        // Ask only once, so that the end of a write also ends the wait.
        let writing = leadership.writes_under_way() > 0;
        View {
            now: leadership.now(),
            term: self.grant.as_ref().map(|grant| grant.term().clone()),
            is_valid: self.grant.as_ref().is_some_and(Grant::is_valid),
            is_open: leadership.can_write(),
            writing,
            may_begin: self.grantor.may_grant(),
            settles_at: leadership.settles_at(writing, self.report.profile.timing.safety_margin()),
        }
    }

    fn change(&mut self, change: GateChange) {
        match change {
            GateChange::Open(term, deadline) => {
                // An error means that the deadline has passed, or that this election stops or stands down.
                self.grant = self.grantor.grant(term, deadline).ok();
                if self.grant.is_some() {
                    self.machine.opened();
                    if let Err(reason) = self.machine.fencing_token() {
                        tracing::info!("this term has no fencing token: {reason}");
                    }
                }
            }
            // An error means that the term has just ended. The next look sees that.
            GateChange::Extend(deadline) => {
                let _ = self.grant.as_ref().map(|grant| grant.extend(deadline));
            }
            GateChange::Drain => {
                self.grantor.close();
                Report::drains(&self.machine);
            }
            GateChange::End(loss) => {
                Report::ends(loss, &self.grantor.leadership());
                self.lose(loss);
            }
        }
    }

    /// Begins a call, which has its own time limit (rule S9).
    fn begin(&mut self, call: Call) {
        self.report.begins(&call, self.grantor.now());
        let (lock, patience) = (self.lock.clone(), self.report.profile.timing.call_timeout());
        let made = async move {
            match (&call.seen, &call.claim) {
                (_, None) => lock.get().await,
                (None, Some(claim)) => lock.create(claim).await.map(Some),
                (Some(seen), Some(claim)) => lock.update(seen, claim).await.map(Some),
            }
        };
        let limited =
            async move { timeout(patience, made).await.unwrap_or_else(|_| Err(ErrLock::timeout(patience))) };
        self.call = Some(limited.boxed());
    }

    fn on_answer(&mut self, answer: Answer, now: Moment) {
        let timed_out = answer.as_ref().is_err_and(|error| error.kind() == ErrLockKind::Timeout);
        // After a timeout, the next call does not use the hung connection (rule S9).
        let stuck = if timed_out { self.lock.reconnect() } else { None };
        self.report.answers(&answer, stuck, now);
        let outcome = self.machine.answered(answer, self.grant.is_some(), now);
        self.report.outcome(&outcome, &self.machine, now);
    }

    /// Ends a release.
    fn given_up(&mut self, outcome: Result<(), &'static str>) {
        if let Err(reason) = outcome {
            tracing::warn!(reason, "the lease was not released; it expires by itself");
        }
        // If the lease could not be released, this candidate stops leading and renewing.
        self.lose(Loss::Abandoned);
        let liveness = &self.report.profile.liveness;
        liveness.note_renewal(None);
        liveness.orders.send_if_modified(|orders| {
            let still_asked = orders.order == Wanted::Stop && orders.left.is_none();
            if still_asked {
                orders.left = Some(outcome.map_or(LeaseEnd::LeftToExpire, |()| LeaseEnd::Released));
            }
            still_asked
        });
    }

    fn lose(&mut self, loss: Loss) {
        if let Some(grant) = self.grant.take() {
            grant.end(loss);
        }
    }
}

/// The answer to the call under way. Waits for ever if there is none. Cancel-safe.
async fn answered(call: &mut Option<BoxFuture<'static, Answer>>) -> Answer {
    let answer = poll_fn(|cx| call.as_mut().map_or(Poll::Pending, |call| call.poll_unpin(cx))).await;
    *call = None;
    answer
}
