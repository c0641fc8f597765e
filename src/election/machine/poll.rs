//! The machine's turn: it takes in what happens, and says the one thing to do next.

use super::{
    claims::HeldBy,
    decide::Decision,
    state::{Call, Flight, Machine, NEVER, Next, Order, Output, View},
};
use crate::{
    election::{hooks::LeaseCall, lease_watch::WatchNews},
    leadership::{Moment, Term},
    lease::{LeaseEvent, LeaseRecord},
};

impl Machine {
    // --- what happens ---

    /// Takes in news of the watch.
    pub fn watched(&mut self, news: WatchNews, now: Moment) {
        match news {
            WatchNews::Up => self.health.watch_begins(now),
            WatchNews::Event(LeaseEvent::Seen(record)) => {
                self.health.watch_tells(&record, now);
                self.observe(record, now);
            }
            WatchNews::Event(LeaseEvent::Deleted(last)) => {
                self.health.watch_tells(&last, now);
                self.observe_absence(Some(&last), now);
            }
            WatchNews::Down(_) => self.health.watch_ends(now),
        }
    }

    /// Takes in an order. The same order again changes nothing.
    pub fn order(&mut self, order: Order) {
        self.order = match (order, self.order) {
            (Order::GiveUp { .. }, before @ Order::GiveUp { .. }) => before,
            (order @ Order::GiveUp { .. }, _) => {
                // Failures before the order do not count.
                self.health.forgive();
                order
            }
            (order, _) => order,
        };
    }

    /// Takes in that the gate has opened for the term of the lease.
    pub fn opened(&mut self) {
        if let Some(term) = self.record().map(LeaseRecord::term) {
            self.own.opens(term);
        }
    }

    /// Ends this candidate's term in good order, for another candidate, also if its gate has not opened. It contends again a
    /// retry period after the release.
    pub fn give_way(&mut self, now: Moment) {
        self.own.yields(now.saturating_add(self.me.drain));
    }

    // --- what to do ---

    /// Says what to do now. `wall_clock` is read only for a write.
    pub fn poll(&mut self, view: &View, wall_clock: impl FnOnce() -> String) -> Output {
        if let Some(change) = self.gate(view) {
            return Output::Gate(change);
        }
        if self.health.wants_another_watch(view.now) {
            return Output::Rewatch;
        }
        if self.flight.is_some() {
            return Output::Wait(NEVER);
        }
        match self.next(view) {
            Next::Call(what) => self.begin(what, view.now, wall_clock),
            Next::Wait(until) => {
                // At that moment the gate is looked at. After it, there is nothing to wait for.
                let drained = self.own.yields_until().filter(|drained| view.now < *drained);
                Output::Wait(until.min(drained.unwrap_or(NEVER)))
            }
            Next::GivenUp(outcome) => {
                self.order = Order::StayAway;
                Output::GivenUp(outcome)
            }
        }
    }

    /// Begins a call.
    fn begin(&mut self, what: LeaseCall, now: Moment, wall_clock: impl FnOnce() -> String) -> Output {
        let doubted = self.health.is_in_doubt();
        if what == LeaseCall::Renew && !self.health.is_failing() {
            self.health.look_at_the_watch(self.record().and_then(LeaseRecord::version), now);
        }
        let seen = self.record().cloned();
        let claim = match what {
            LeaseCall::Read | LeaseCall::Ask => None,
            LeaseCall::Acquire => Some(self.acquisition(now, wall_clock())),
            LeaseCall::Renew => Some(self.renewal(now, wall_clock())),
            LeaseCall::Release => self.release(now, wall_clock()),
            LeaseCall::Acknowledge => self.acknowledgement(),
        };
        // There is nothing to acknowledge: this crate did not write this handover.
        if claim.is_none() && what != LeaseCall::Read {
            return Output::Wait(now);
        }
        self.health.begin(now);
        self.flight = Some(Flight { what, sent: now, seen: seen.clone(), doubted });
        let preempts = what == LeaseCall::Acquire && self.entry.precedence.is_preempting();
        Output::Call(Call { what, seen, claim, preempts })
    }

    // --- what others may know ---

    /// Whether this is this candidate's term, and it is not over.
    pub(in crate::election) fn is_in(&self, term: &Term) -> bool {
        self.own.is_of(term)
    }

    /// Whether this candidate contends now.
    pub(in crate::election) fn contends(&self, view: &View) -> bool {
        let leads = view.term.is_some() && self.own.yields_until().is_none();
        self.order == Order::Contend && (leads || view.may_begin)
    }

    /// Whether the lease is free to take.
    pub(in crate::election) fn is_vacant(&self, now: Moment) -> bool {
        self.decide(now, false) == Decision::Take
    }

    /// What is wrong with the lease, in words for the log.
    pub fn oddity(&self) -> Option<&'static str> {
        let double = "another process uses this identity; give each process its own";
        let record = self.record()?;
        let odd = record.oddity().or_else(|| self.entry.precedence.oddity(record));
        odd.or((self.held_by() == HeldBy::Double).then_some(double))
    }

    /// For whom this candidate waits, if that takes longer than its own lease lasts, in words for the log.
    pub fn long_wait(&self, now: Moment) -> Option<String> {
        let rest = self.formers.until(now)?.saturating_since(now);
        let name = self.formers.last_to_end().filter(|_| rest > self.me.timing.lease_duration())?;
        // A lease that names this candidate says to its next process too that it waits.
        let first = if self.is_mine() { "delete the lease and " } else { "" };
        Some(format!(
            "{name} held this lease for a longer time than this candidate does, and may write for {} s; if its process \
             has ended, {first}restart the replicas",
            rest.as_secs()
        ))
    }

    /// How long this candidate waits for former writers behind a shut gate. None if it does not hold the lease.
    pub(in crate::election) fn waits_until(&self, now: Moment) -> Option<Moment> {
        self.formers.until(now).filter(|_| self.is_current())
    }

    /// Whether this candidate precedes the holder, but waits because the two preempt each other in turn. None if neither
    /// they do, nor have done so a short while ago.
    pub(in crate::election) fn backs_off(&self, now: Moment) -> Option<bool> {
        let backs_off = self.record().and_then(|record| self.preempts(record)).is_some_and(|from| now < from);
        (backs_off || !self.entry.precedence.preempted_recently(now)).then_some(backs_off)
    }
}
