//! The loop: it takes in news and makes the call that is due. It owns the grantor, so the gate closes when this task
//! ends, even by a panic (rule S10).
//!
//! `candidacy` decides what is next after each wait. `steps` are the things that a candidate does, `calls` makes one
//! lease call, `news` acts on news of the lease, `opening` waits until the gate may open, and `asking` is the question.
//! `coordination` is what a coordinator changes, and `standby` keeps this follower among the next holders.

mod asking;
mod calls;
mod coordination;
mod news;
mod opening;
mod standby;
mod steps;

use self::asking::Asking;
use super::{
    candidacy::{Candidacy, Decision, Inputs, Next, Task},
    candidate::Profile,
    coordination::Standing,
    early::{EarlyTakeover, HolderWatch, Succession},
    ended::LeaseEnd,
    lease_watch::{LeaseWatch, watch_lease},
    preemption::Priority,
};
use crate::{
    api::Complaint,
    leadership::{Grant, Grantor, Leadership, Loss},
    lease::{Lock, ReleaseLock},
};
use futures_util::StreamExt;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The orders of the election.
#[derive(Clone, Debug)]
pub(super) enum Orders {
    /// Contend, lead, and contend again.
    Contend,
    /// Renew a held lease, but acquire nothing: the admitted writes finish.
    Hold,
    /// Release the lease, report how it was left, and acquire nothing more.
    StandDown(mpsc::Sender<LeaseEnd>),
}

pub(super) struct Elector<L: Lock> {
    lock: Arc<ReleaseLock<L>>,
    grantor: Grantor,
    leadership: Leadership,
    profile: Arc<Profile>,
    orders: watch::Receiver<Orders>,
    candidacy: Candidacy,
    grant: Option<Grant>,
    /// None if candidates contend by themselves.
    standing: Option<Standing>,
    lease_watch: LeaseWatch,
    asking: Option<Asking>,
    holder_watch: HolderWatch,
    /// How many calls failed since the order to release the lease.
    failed: u32,
    /// How many calls met a newer version since then.
    conflicts: u32,
    calls: Complaint,
    fresh: Complaint,
    watch: Complaint,
    /// Why the gate may not open.
    shut: Complaint,
    former: Complaint,
    oddity: Complaint,
    mutual_preemption: Complaint,
}

impl<L: Lock> Elector<L> {
    pub(super) fn new(
        lock: L,
        grantor: Grantor,
        profile: Arc<Profile>,
        priority: Option<Priority>,
        early: Option<&EarlyTakeover>,
        orders: watch::Receiver<Orders>,
    ) -> Self {
        let lock = Arc::new(ReleaseLock::new(lock, &grantor));
        let candidacy = Candidacy::new(profile.identity.clone(), profile.timing, priority);
        let asks = profile.hooks.fenced.is_some();
        let mut candidacy = if asks { candidacy.asks_before_opening() } else { candidacy };
        candidacy.early = Succession::new(early);
        Self {
            lease_watch: watch_lease(lock.clone(), profile.timing),
            holder_watch: HolderWatch::new(early, &profile.lease, profile.timing, grantor.leadership()),
            candidacy,
            asking: None,
            lock,
            leadership: grantor.leadership(),
            grantor,
            profile,
            orders,
            grant: None,
            standing: None,
            failed: 0,
            conflicts: 0,
            calls: Complaint::new("lease calls fail"),
            fresh: Complaint::new("lease calls stay on a connection that hangs"),
            watch: Complaint::new("the lease cannot be watched; it is polled"),
            shut: Complaint::new("this candidate holds the lease, and the gate stays shut"),
            former: Complaint::new("no candidate may lead before a former holder's time is over"),
            oddity: Complaint::new("the lease makes no sense"),
            mutual_preemption: Complaint::new(
                "candidates preempt each other in turn; make their priorities agree",
            ),
        }
    }

    /// Runs until no more orders can come.
    pub(super) async fn run(mut self) {
        loop {
            let order = self.orders.borrow_and_update().clone();
            if self.grant.as_ref().is_some_and(|grant| !grant.is_valid()) {
                self.lose(Loss::Expired);
            }
            // Ask only once, so that the end of a write also ends the wait below.
            let writing = self.leadership.writes_under_way() > 0;
            if self.candidacy.own.owes_an_acknowledgement() && !writing {
                // A preempted term ends with its last write.
                self.lose(Loss::Taken);
            }
            let cut_off_at = self.coordinate(writing);
            self.tell_vacancy();
            self.ask_before_opening();
            self.end_the_trouble_of_a_shut_gate();
            self.note_a_long_wait();
            let inputs = self.inputs(&order, writing);
            match self.candidacy.next(&inputs) {
                Next::Call(call) => self.make(call).await,
                Next::GivenUp(outcome) => {
                    self.withdraw(2).await;
                    self.given_up(&order, outcome);
                }
                Next::Wait(until) => {
                    let until = cut_off_at.map_or(until, |at| at.min(until));
                    let leadership = self.leadership.clone();
                    tokio::select! {
                        biased;
                        changed = self.orders.changed() => if changed.is_err() { return },
                        // At the deadline the writes that are waited for are cut off.
                        () = leadership.idle(), if writing && !leadership.can_write() => {}
                        () = leadership.sleep_until(until) => {}
                        answer = Asking::answer(&mut self.asking) => self.on_answer(answer),
                        Some(news) = self.lease_watch.next() => self.on_watch_news(news),
                        Some(ended) = self.holder_watch.next() => self.candidacy.early.ended(ended),
                        () = Standing::changed(&mut self.standing) => self.note_trouble(),
                    }
                }
            }
        }
    }

    fn inputs(&mut self, order: &Orders, writing: bool) -> Inputs {
        let task = match order {
            Orders::Contend if self.contends() => Task::Contend,
            Orders::Contend | Orders::Hold => Task::Hold,
            // The caller has received the result, or no longer waits for it.
            Orders::StandDown(done) if done.capacity() == 0 || done.is_closed() => Task::StayAway,
            Orders::StandDown(_) => Task::GiveUp { failed: self.failed },
        };
        if !matches!(task, Task::GiveUp { .. }) {
            (self.failed, self.conflicts) = (0, 0);
        }
        Inputs {
            now: self.leadership.now(),
            task,
            leads: self.grant.is_some(),
            settles_at: self.leadership.settles_at(writing, self.profile.timing.tolerated_skew()),
        }
    }

    /// Ends a release.
    fn given_up(&mut self, order: &Orders, outcome: Result<(), &'static str>) {
        if let Err(reason) = outcome {
            tracing::warn!(reason, "the lease was not released; it expires by itself");
        }
        // If the lease could not be released, this candidate stops leading and renewing.
        self.lose(Loss::Abandoned);
        self.profile.pulse.rest();
        if let Orders::StandDown(done) = order {
            // Cannot fail: the channel has room for the one answer.
            let _ = done.try_send(outcome.map_or(LeaseEnd::LeftToExpire, |()| LeaseEnd::Released));
        }
    }

    /// Whether it may contend now. The end of a term's work orders its release, and allows the next term (rule S11).
    fn contends(&self) -> bool {
        let leads = self.grant.is_some() && !self.candidacy.gives_way();
        matches!(*self.orders.borrow(), Orders::Contend) && (leads || self.grantor.may_grant())
    }

    /// Reports the trouble to readers. A missing watch is not trouble.
    fn note_trouble(&self) {
        let all = [&self.fresh, &self.calls, &self.shut, &self.former, &self.oddity];
        let trouble = all.into_iter().find_map(Complaint::text).cloned();
        let trouble = trouble.or_else(|| self.standing.as_ref().and_then(Standing::trouble));
        self.grantor.note_trouble(trouble);
    }

    /// A wait for a former holder that takes longer than a lease is trouble.
    fn note_a_long_wait(&mut self) {
        let now = self.leadership.now();
        match self.candidacy.long_wait(now) {
            Some(details) => self.former.raise("former holder", &details, now),
            None if self.former.text().is_none() => return,
            None => self.former.settle(now),
        }
        self.note_trouble();
    }

    fn tell_vacancy(&self) {
        if let Some(hook) = &self.profile.hooks.lease {
            let now = self.leadership.now();
            let is_free = matches!(self.candidacy.decide(now, false), Decision::Take | Decision::Await);
            hook.vacant(self.grant.is_none() && is_free, now);
        }
    }

    fn lose(&mut self, loss: Loss) {
        if let Some(grant) = self.grant.take() {
            grant.end(loss);
        }
    }
}
