//! The loop of an election: it tells the machine what happens, makes the calls that the machine wants, and opens and
//! closes the gate. It owns the grantor, so the gate closes when this task ends, even by a panic (rule S10).

use super::{
    candidate::Profile,
    hooks::LeaseCall,
    lease_watch::{LeaseWatch, WatchNews, watch_lease},
    machine::{Busy, Call, Gate, Machine, Next},
    program::Program,
    report::Report,
};
use crate::{
    leadership::{Grant, Grantor, Intent, Leadership, Loss, Moment, Orders, Term},
    lease::{BoxLock, ErrLock, ErrLockKind, LeaseEvent, LeaseRecord, Lock, Place, Places, ReleaseLock},
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use jiff::Timestamp;
use std::{future::poll_fn, sync::Arc, task::Poll};
use tokio::time::timeout;

type Answer = Result<Option<LeaseRecord>, ErrLock>;

pub(super) struct Task {
    machine: Machine,
    lock: Arc<ReleaseLock<BoxLock>>,
    /// The call under way.
    call: Option<BoxFuture<'static, Answer>>,
    places: Option<Places>,
    /// The place that the next call needs, since a pool limits its calls, and the wait for this place.
    place: Option<Place>,
    queue: Option<BoxFuture<'static, Place>>,
    grantor: Grantor,
    grant: Option<Grant>,
    orders: Orders,
    program: Program,
    /// What the watch has shown: its newest version, and when its last news came. None while there is no watch.
    shown: Option<(u64, Moment)>,
    /// Whether the task has to begin another watch.
    rewatch: bool,
    /// Whether the last call has failed.
    failing: bool,
    report: Report,
}

impl Task {
    pub(super) fn new(
        machine: Machine,
        lock: BoxLock,
        places: Option<Places>,
        grantor: Grantor,
        profile: Arc<Profile>,
        program: Program,
    ) -> Self {
        Self {
            machine,
            lock: Arc::new(ReleaseLock::new(lock, &grantor)),
            call: None,
            places,
            place: None,
            queue: None,
            orders: grantor.orders(),
            grantor,
            grant: None,
            program,
            shown: None,
            rewatch: false,
            failing: false,
            report: Report::new(profile),
        }
    }

    /// Runs until it is dropped.
    pub(super) async fn run(mut self) {
        let leadership = self.grantor.leadership();
        let mut lease_watch = self.watch();
        loop {
            self.program.apply_checks(&mut self.machine, &leadership);
            let now = leadership.now();
            if let Some(term) = self.orders.take_asked() {
                self.machine.give_way(&term);
            }
            // If the gate has to close, close it first, and only then look for writes that are under way. So no write
            // is missed.
            self.apply_gate(&leadership, now);
            self.machine.handle_order(leadership.intent());
            let busy = self.busy(&leadership, now);
            let next = self.machine.poll(busy, Timestamp::now(), now);
            self.apply_gate(&leadership, now);
            let leads = self.grant.is_some();
            self.report.tell(&self.machine, leads, &self.grantor, now);
            self.program.tell(&self.machine, leads, &self.report.profile, &self.grantor, now);
            let until = match next {
                Next::Call(call) => {
                    self.begin(call, now);
                    continue;
                }
                Next::Wait(until) => until,
                Next::Done(how) => {
                    self.done(how);
                    now.saturating_add(self.report.profile.timing.retry_period())
                }
            };
            self.look_for_a_place(now);
            if std::mem::take(&mut self.rewatch) {
                tracing::debug!("the watch of the lease is silent; restarting it");
                self.watched(WatchNews::Down(None), now);
                lease_watch = self.watch();
            }
            let until = self.program.moments(now).fold(until, Moment::min);
            let drains = busy.writes && !leadership.can_write();
            tokio::select! {
                // Many events must not delay the call.
                biased;
                answer = answered(&mut self.call) => self.on_answer(answer, leadership.now()),
                place = queued(&mut self.queue) => self.place = Some(place),
                () = self.orders.changed() => {}
                () = self.program.opening.decided() => {}
                // The task waits for the admitted writes. At the deadline, the gate cuts them off.
                () = leadership.idle(), if drains => {}
                () = leadership.sleep_until(until) => {}
                Some(news) = lease_watch.next() => self.watched(news, leadership.now()),
            }
        }
    }

    // --- the gate ---

    /// Opens, extends or closes the gate, as the machine says.
    fn apply_gate(&mut self, leadership: &Leadership, now: Moment) {
        match self.machine.gate(now) {
            Gate::Shut(loss) => {
                self.program.opening.end(now);
                self.lose(loss, now);
            }
            Gate::Closing { .. } => {
                self.program.opening.end(now);
                if self.grant.is_some() && leadership.can_write() {
                    self.grantor.close();
                    tracing::info!("giving the lease up for another candidate");
                }
            }
            Gate::Open { term, deadline } => {
                if let Some(grant) = self.grant.as_ref().filter(|grant| grant.term().is_same(&term)) {
                    // An error means that the term has just ended.
                    let _ = grant.extend(deadline);
                } else if self.may_open(&term, leadership, now) {
                    self.begin_term(term, deadline, now);
                } else {
                    return;
                }
                if !self.grant.as_ref().is_some_and(Grant::is_valid) {
                    // Another part of the process has ended the term, or lets none begin.
                    self.lose(Loss::Abandoned, now);
                    self.machine.end_term(Loss::Abandoned);
                }
            }
        }
    }

    /// Whether what the gate of this term waits for has come (rule S16).
    fn may_open(&mut self, term: &Term, leadership: &Leadership, now: Moment) -> bool {
        self.lose(Loss::Expired, now); // of an earlier term
        if leadership.intent() == Intent::Contend {
            let margin = self.report.profile.timing.safety_margin();
            return self.program.lets_open(term, &mut self.machine, leadership, margin, now);
        }
        self.machine.end_term(Loss::Abandoned); // this process lets no term begin
        false
    }

    fn begin_term(&mut self, term: Term, deadline: Moment, now: Moment) {
        let token = term.fencing_token();
        // An error means that the deadline has passed, or that the election stops or stands down.
        self.grant = self.grantor.grant(term, deadline).ok();
        if self.grant.is_none() {
            return;
        }
        self.program.leads(now);
        if token.is_none() {
            let reason = "the resource version of the lease is no number, or has gone back";
            tracing::info!("this term has no fencing token: {reason}");
        }
    }

    fn lose(&mut self, loss: Loss, now: Moment) {
        if let Some(grant) = self.grant.take() {
            grant.end(loss);
            self.program.loses(now);
        }
    }

    /// What this process still does in its term.
    fn busy(&self, leadership: &Leadership, now: Moment) -> Busy {
        if let Some(seen) = self.machine.predecessor_seen() {
            self.grantor.note_unanswered(seen);
        }
        let margin = self.report.profile.timing.safety_margin();
        Busy {
            writes: !leadership.is_quiet(),
            settle_at: leadership.settles_at(margin),
            restraint: self.program.restraint(now),
            is_crowded: self.places.is_some() && self.place.is_none(),
        }
    }

    /// Reports how this process has left the lease.
    fn done(&self, how: Result<(), &'static str>) {
        let is_news = self.grantor.note_left(how.is_ok());
        if let (true, Err(reason)) = (is_news, how) {
            tracing::warn!(reason, "the lease was not released; it expires by itself");
        }
    }

    // --- calls ---

    /// Begins a call, which has its own time limit (rule S9).
    fn begin(&mut self, mut call: Call, now: Moment) {
        if call.what == LeaseCall::Renew && !self.machine.is_failing() {
            self.look_at_the_watch(now);
        }
        Report::begins(&call);
        let patience = self.report.profile.timing.call_timeout();
        let (lock, place) = (self.lock.clone(), self.place.take());
        if let (None, Some(update)) = (&call.seen, &mut call.update) {
            update.new_metadata = self.report.profile.marks.metadata();
        }
        let made = async move {
            let _place = place;
            match (&call.seen, &call.update) {
                (_, None) => lock.get().await,
                (None, Some(update)) => lock.create(update).await.map(Some),
                (Some(seen), Some(update)) => lock.update(seen, update).await.map(Some),
            }
        };
        let timed =
            timeout(patience, made).map(move |made| made.unwrap_or_else(|_| Err(ErrLock::timeout(patience))));
        self.call = Some(timed.boxed());
    }

    /// If a call is due, begins to wait for a place. If no call is due, gives the place back.
    fn look_for_a_place(&mut self, now: Moment) {
        if !self.machine.is_due(now) {
            (self.place, self.queue) = (None, None);
        } else if self.place.is_none() && self.queue.is_none() {
            self.queue = self.places.as_ref().map(Places::wait);
        }
    }

    fn on_answer(&mut self, answer: Answer, now: Moment) {
        let own = &self.report.profile.lease;
        let answer = answer.and_then(|lease| lease.map(|lease| lease.of(own)).transpose());
        let timed_out = answer.as_ref().is_err_and(|error| error.kind() == ErrLockKind::Timeout);
        // After a timeout, the next call does not use the hung connection (rule S9).
        let stuck = if timed_out { self.lock.reconnect() } else { None };
        // A conflict is no failure: the API server has answered.
        let failed = answer.as_ref().is_err_and(|error| error.kind() != ErrLockKind::Conflict);
        let recovers = std::mem::replace(&mut self.failing, failed) && !failed;
        let (Some(call), polls) = (self.machine.under_way(), self.machine.polls()) else { return };
        self.report.answers(call, &answer, stuck, &self.grantor, now);
        let outcome = self.machine.handle_answer(answer, now);
        Report::outcome(call.0, outcome, &self.machine, &self.grantor, now);
        // If calls work again, the watch may work again too. Begin it at once, because the pauses between watches have
        // grown meanwhile.
        self.rewatch |= recovers && self.shown.is_none();
        if polls {
            self.look_at_the_watch(now);
        }
    }

    // --- the watch ---

    fn watch(&self) -> LeaseWatch {
        watch_lease(self.lock.clone(), self.report.profile.lease.clone(), self.report.profile.timing)
    }

    fn watched(&mut self, news: WatchNews, now: Moment) {
        self.report.watched(&news, &self.machine, now);
        let before = self.shown.map_or(0, |(newest, _)| newest);
        self.shown = match &news {
            WatchNews::Up => Some((0, now)),
            WatchNews::Down(_) => None,
            WatchNews::Event(LeaseEvent::Seen(record) | LeaseEvent::Deleted(record)) => {
                self.shown.map(|_| (before.max(record.version().unwrap_or(0)), now))
            }
        };
        self.machine.handle_watch(news, now);
    }

    /// Asks for another watch if this one has not shown the newest version that this candidate knows. But if the watch
    /// has shown something a moment ago, it may only be slower than the answer to a call, so this does nothing.
    fn look_at_the_watch(&mut self, now: Moment) {
        let pause = self.report.profile.timing.pause();
        let is_silent =
            |(newest, at): (u64, Moment)| newest < self.machine.newest() && now.saturating_since(at) >= pause;
        self.rewatch |= self.shown.is_some_and(is_silent);
    }
}

/// The answer to the call under way. Waits for ever if there is none. Cancel-safe.
async fn answered(call: &mut Option<BoxFuture<'static, Answer>>) -> Answer {
    let answer = poll_fn(|cx| call.as_mut().map_or(Poll::Pending, |call| call.poll_unpin(cx))).await;
    *call = None;
    answer
}

/// The place for the next call. Waits for ever if the task does not wait for a place. Cancel-safe.
async fn queued(queue: &mut Option<BoxFuture<'static, Place>>) -> Place {
    let place = poll_fn(|cx| queue.as_mut().map_or(Poll::Pending, |queue| queue.poll_unpin(cx))).await;
    *queue = None;
    place
}
