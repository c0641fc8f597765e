//! The loop: what is seen and what is due, call by call. The grant lives here, so that the end of this task, in
//! whatever way, closes the gate (rule S10).
//!
//! This file decides what is next; `calls` makes one lease call, `steps` the three things that a candidate does,
//! `yielding` what it does when it was preempted, `knowledge` what follows from news of the lease.

mod calls;
mod knowledge;
mod steps;
mod yielding;

use self::yielding::drained;
use super::{
    candidacy::{Candidacy, Decision},
    complaint::Complaint,
    ended::Stopped,
    hooks::LeaseObserver,
    observer::{Observer, observe},
    pulse::Pulse,
};
use crate::{
    leadership::{Grant, Leadership, Loss, Moment, Term},
    lease::{JITTER, LeaseTiming, Lock, ReleaseLock},
};
use futures_util::StreamExt;
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// What the election is told to do.
#[derive(Clone, Debug)]
pub(super) enum Orders {
    /// Contend, lead, contend again.
    Contend,
    /// Renew what is held, acquire nothing more: writes are being drained.
    Hold,
    /// Give the lease up, say what has become of it, and acquire nothing more.
    StandDown(mpsc::Sender<Stopped>),
    /// Give the lease up and end.
    Release,
}

/// What is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    /// Read, and see whether the watch has told as much.
    Verify,
    Acquire,
    Renew,
    /// Say in the lease that the writes of a preempted term have ended.
    Acknowledge,
    /// Nothing; decide again.
    Decide,
}

/// After so many retry periods without news, a watch is not trusted any more.
const SILENT_PERIODS: u32 = 2;

/// How far what is known of the lease can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    None,
    /// Something may have happened meanwhile: read, unless a renewal is due, which tells as much.
    MayBeOld,
    /// A write met a newer version: read before the next one.
    IsOld,
}

pub(super) struct Elector<L: Lock> {
    lock: Arc<ReleaseLock<L>>,
    leadership: Leadership,
    timing: LeaseTiming,
    pulse: Arc<Pulse>,
    hook: Option<Arc<dyn LeaseObserver>>,
    orders: watch::Receiver<Orders>,
    candidacy: Candidacy,
    grant: Option<Grant>,
    /// The term that was preempted, its writes finished: its successor is to be told.
    yielded: Option<Term>,
    observer: Observer,
    /// Whether the watch stands.
    watching: bool,
    /// The newest version that the watch has told of.
    heard: Option<u64>,
    /// When it last told of something, or began.
    last_heard: Moment,
    /// Whether what is known of the lease may be old.
    doubt: Doubt,
    /// Whether a write went unanswered, so that the lease may be this candidate's without its knowing.
    unanswered: bool,
    /// Calls that failed in a row, reads that only led to another failing write aside.
    failures: u32,
    /// Nothing is sent before this moment.
    not_before: Moment,
    /// So much before its time the next renewal comes.
    early: Duration,
    /// When the lease was last read or written.
    last_call: Moment,
    calls: Complaint,
    watch: Complaint,
    oddity: Complaint,
    peace: Complaint,
}

impl<L: Lock> Elector<L> {
    pub(super) fn new(
        lock: L,
        leadership: Leadership,
        candidacy: Candidacy,
        timing: LeaseTiming,
        pulse: Arc<Pulse>,
        hook: Option<Arc<dyn LeaseObserver>>,
        orders: watch::Receiver<Orders>,
    ) -> Self {
        let lock = Arc::new(ReleaseLock::new(lock, leadership.clone()));
        let now = leadership.now();
        Self {
            observer: observe(lock.clone(), timing),
            lock,
            candidacy,
            timing,
            pulse,
            hook,
            orders,
            grant: None,
            yielded: None,
            watching: false,
            heard: None,
            last_heard: now,
            doubt: Doubt::None,
            unanswered: false,
            failures: 0,
            not_before: now,
            early: Duration::ZERO,
            last_call: now,
            calls: Complaint::new("lease calls fail"),
            watch: Complaint::new("the lease cannot be watched; it is polled"),
            oddity: Complaint::new("the lease makes no sense"),
            peace: Complaint::new("candidates preempt each other in turn; let their priorities agree"),
            leadership,
        }
    }

    /// Runs until it is ordered to release.
    pub(super) async fn run(mut self) -> Stopped {
        loop {
            let order = self.orders.borrow_and_update().clone();
            self.check_grant();
            match order {
                Orders::Contend | Orders::Hold => {}
                Orders::StandDown(done) => self.stand_down(done).await,
                Orders::Release => {
                    let stopped = self.release().await;
                    self.pulse.end(Ok(stopped));
                    return stopped;
                }
            }
            self.tell_vacancy();
            let (step, due) = self.plan();
            let leadership = self.leadership.clone();
            tokio::select! {
                biased;
                changed = self.orders.changed() => if changed.is_err() { return Stopped::LeftToExpire },
                () = drained(&leadership), if self.is_yielding() => self.finish_yielding(),
                () = leadership.sleep_until(due) => match step {
                    Step::Decide => {}
                    Step::Read => { self.read().await; }
                    Step::Verify => self.verify().await,
                    Step::Acquire => self.acquire().await,
                    Step::Renew => self.renew().await,
                    Step::Acknowledge => self.acknowledge().await,
                },
                Some(observed) = self.observer.next() => self.on_observed(observed),
            }
        }
    }

    /// What is due next, and when.
    fn plan(&self) -> (Step, Moment) {
        let now = self.leadership.now();
        let leading = self.grant.is_some();
        let decision = self.candidacy.decide(now, leading);
        // It spares the other a wait; once that one's time is over, there is something better to do.
        let waits = matches!(decision, Decision::WaitUntil(_));
        if waits && self.owes_an_acknowledgement() && self.doubt != Doubt::IsOld {
            return (Step::Acknowledge, self.not_before);
        }
        if !leading && !self.contends() {
            return (Step::Decide, now.saturating_add(self.timing.retry_period()));
        }
        let read = (Step::Read, self.not_before);
        if self.doubt == Doubt::IsOld {
            return read;
        }
        match decision {
            Decision::Renew => {
                let period = self.timing.retry_period().saturating_sub(self.early);
                let due = self.pulse.renewed().saturating_add(period).max(self.not_before);
                if now >= due || self.doubt == Doubt::None { (Step::Renew, due) } else { read }
            }
            Decision::Read => read,
            Decision::Open => (Step::Renew, self.not_before),
            Decision::Hold(until) => {
                let due = self.pulse.renewed().saturating_add(self.timing.retry_period());
                if until < due { (Step::Decide, until) } else { (Step::Renew, due.max(self.not_before)) }
            }
            _ if self.doubt != Doubt::None => read,
            Decision::Create | Decision::Take | Decision::Preempt => (Step::Acquire, self.not_before),
            Decision::WaitUntil(until) if self.watching => {
                // A holder renews each retry period: a watch that tells nothing for longer may hang.
                let news = self.last_heard.max(self.last_call);
                let silent =
                    news.saturating_add(self.timing.retry_period() * SILENT_PERIODS).max(self.not_before);
                if until < silent { (Step::Decide, until) } else { (Step::Verify, silent) }
            }
            Decision::WaitUntil(until) => {
                let jitter = 1.0 + (JITTER - 1.0) * fastrand::f64();
                let poll = self.last_call.saturating_add(self.timing.retry_period().mul_f64(jitter));
                if until < poll { (Step::Decide, until) } else { (Step::Read, poll.max(self.not_before)) }
            }
        }
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

    /// Tells whoever asks what is in the way; a watch that does not stand is not.
    fn note_trouble(&self) {
        self.leadership.note_trouble(self.calls.text().or(self.oddity.text()).cloned());
    }

    fn tell_vacancy(&self) {
        if let Some(hook) = &self.hook {
            let now = self.leadership.now();
            let decision = self.candidacy.decide(now, self.grant.is_some());
            hook.vacant(matches!(decision, Decision::Create | Decision::Take), now);
        }
    }

    fn lose(&mut self, loss: Loss) {
        if let Some(grant) = self.grant.take() {
            grant.end(loss);
        }
    }
}
