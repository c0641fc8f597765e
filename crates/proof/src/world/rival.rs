//! A candidate among others on one lease: it hears of it late, and each of its calls may be lost, be answered late or not
//! at all, or land late.
//!
//! The shipped machine decides everything. After each event the process asks it what to do until it says to wait, as
//! `src/election/elector.rs` does.

use super::server::Server;
use kube_leader_gate::{
    Identity, LeaseTiming,
    election::Priority,
    internal::{Call, GateChange, LeaseCall, Machine, Order, Output, View, WatchNews},
    leadership::{Moment, Term},
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseRecord},
};
use std::{collections::VecDeque, time::Duration};

pub(crate) const ALWAYS: Moment = Moment::from_nanos(0);
pub(crate) const NEVER: Moment = Moment::from_nanos(u64::MAX);

/// How long its admitted writes may take when it gives way.
const DRAIN: Duration = Duration::from_secs(3);

/// More turns at one moment are a circle.
const TURNS: usize = 16;

/// The times of all runs count from one moment.
pub(crate) fn at(seconds: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000).saturating_add(Duration::from_secs(seconds))
}

/// A call under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) call: Call,
    pub(crate) sent: Moment,
    /// What the API server has made of it.
    pub(crate) outcome: Option<Result<Option<LeaseRecord>, ErrLockKind>>,
}

/// The shipped machine, and what a process has around it: a gate, a watch, and a call under way.
#[allow(clippy::struct_excessive_bools, reason = "each is one fact about the process")]
#[derive(Clone, Debug)]
pub(crate) struct Rival {
    pub(crate) name: String,
    pub(crate) priority: Option<&'static str>,
    pub(crate) timing: LeaseTiming,
    pub(crate) machine: Machine,
    pub(crate) order: Order,
    /// Until when the machine waits.
    pub(crate) until: Moment,
    /// The election stops, so no term may begin.
    suspended: bool,
    /// The term that the gate was opened for, until it is ended.
    pub(crate) term: Option<Term>,
    /// The last term that the gate was opened for, without its token.
    pub(crate) used: Option<Term>,
    /// The end of that term.
    pub(crate) deadline: Option<Moment>,
    pub(crate) closing: bool,
    pub(crate) writing: bool,
    unanswered: Moment,
    /// When the last thing that it has sent can land no more.
    pub(crate) lands_until: Moment,
    /// How long after its end a write may land.
    pub(crate) late: Duration,
    /// The wall clock, if it stands still.
    pub(crate) standing_clock: Option<&'static str>,
    pub(crate) flight: Option<Flight>,
    /// When the last claim or renewal was sent that was answered.
    pub(crate) renewed: Moment,
    pub(crate) inbox: VecDeque<LeaseEvent>,
    /// It has ended its watch, and another one is to begin.
    pub(crate) rewatches: bool,
    /// The uid of the last lease object of whose deletion it has heard.
    pub(crate) deleted: Option<String>,
    /// The rule that it has broken.
    pub(crate) broken: Option<&'static str>,
}

impl Rival {
    pub(crate) fn new(name: &str, priority: Option<&'static str>) -> Self {
        Self::timed(name, priority, LeaseTiming::fast())
    }

    /// A candidate with these times.
    pub(crate) fn timed(name: &str, priority: Option<&'static str>, timing: LeaseTiming) -> Self {
        Self::begun(name, priority, timing, at(0))
    }

    fn begun(name: &str, priority: Option<&'static str>, timing: LeaseTiming, now: Moment) -> Self {
        let ranked = |key| Priority::ranked(key, ["high", "low", ""]).unwrap_or_else(|_| unreachable!());
        let mut machine = Machine::new(Identity::new(name).unwrap(), timing, priority.map(ranked), DRAIN);
        machine.watched(WatchNews::Up, now);
        Self {
            name: name.to_owned(),
            priority,
            timing,
            machine,
            order: Order::Contend,
            until: now,
            suspended: false,
            term: None,
            used: None,
            deadline: None,
            closing: false,
            writing: false,
            unanswered: ALWAYS,
            lands_until: ALWAYS,
            late: timing.safety_margin(),
            standing_clock: None,
            flight: None,
            renewed: ALWAYS,
            inbox: VecDeque::new(),
            rewatches: false,
            deleted: None,
            broken: None,
        }
    }

    // --- the gate ---

    pub(crate) fn leads(&self, now: Moment) -> bool {
        self.deadline.is_some_and(|deadline| now < deadline)
    }

    pub(crate) fn can_write(&self, now: Moment) -> bool {
        self.leads(now) && !self.closing
    }

    /// The write under way has ended, with an answer or without one, by the deadline at the latest.
    pub(crate) fn write_ends(&mut self, answered: bool, now: Moment) {
        if std::mem::take(&mut self.writing) && !answered {
            self.unanswered = now;
            let end = self.deadline.map_or(now, |deadline| now.min(deadline));
            self.lands_until = self.lands_until.max(end.saturating_add(self.late));
        }
        if self.closing {
            self.turn(now);
        }
    }

    /// What it has not noticed has happened all the same: its term is over, and its write may land.
    pub(crate) fn runs_out(&mut self, now: Moment) {
        if self.writing && !self.leads(now) {
            let end = self.deadline.unwrap_or(now);
            self.lands_until = self.lands_until.max(end.saturating_add(self.late));
        }
    }

    pub(crate) fn lose(&mut self, now: Moment) {
        self.closing = false;
        self.write_ends(false, now);
        (self.term, self.deadline) = (None, None);
    }

    fn view(&self, now: Moment) -> View {
        let last = self.unanswered.max(if self.writing { now } else { ALWAYS });
        View {
            now,
            term: self.term.clone(),
            is_valid: self.leads(now),
            is_open: self.can_write(now),
            writing: self.writing,
            may_begin: !self.suspended,
            settles_at: match last {
                ALWAYS => ALWAYS,
                last => last.saturating_add(self.timing.safety_margin()),
            },
        }
    }

    fn change(&mut self, change: GateChange, now: Moment) {
        match change {
            GateChange::Open(term, deadline) => {
                let may_open = self.term.is_none() && !self.suspended && now < deadline;
                self.must(may_open, "S1: a gate opened out of turn");
                self.used = Some(Term::new(term.lease_uid(), term.transitions()));
                (self.term, self.deadline, self.closing) = (Some(term), Some(deadline), false);
                self.machine.opened();
            }
            GateChange::Extend(deadline) => {
                if self.leads(now) {
                    self.deadline = self.deadline.max(Some(deadline));
                }
            }
            GateChange::Drain => self.closing = true,
            GateChange::End(_) => self.lose(now),
        }
    }

    // --- what happens ---

    /// Its watch loses all news, and shows the lease anew.
    pub(crate) fn relists(&mut self, lease: Option<LeaseRecord>, now: Moment) {
        self.machine.watched(WatchNews::Down(None), now);
        self.inbox.clear();
        self.inbox.extend(lease.map(LeaseEvent::Seen));
        self.resumes(now);
    }

    /// Another watch begins, and tells what this one has not told.
    pub(crate) fn resumes(&mut self, now: Moment) {
        self.rewatches = false;
        self.machine.watched(WatchNews::Up, now);
        self.turn(now);
    }

    pub(crate) fn hear(&mut self, now: Moment) {
        let Some(event) = self.inbox.pop_front() else { return };
        if let LeaseEvent::Deleted(last) = &event {
            self.deleted = Some(last.uid().to_owned());
        }
        self.machine.watched(WatchNews::Event(event), now);
        self.turn(now);
    }

    pub(crate) fn order(&mut self, order: Order, now: Moment) {
        self.machine.order(order);
        self.order = order;
        match order {
            Order::Contend => self.suspended = false,
            Order::GiveUp { .. } => {
                self.suspended = true;
                self.closing = self.deadline.is_some();
                // The time for draining is up.
                if self.writing {
                    self.lose(now);
                }
            }
            Order::Hold | Order::StayAway => {}
        }
        self.turn(now);
    }

    /// Something in the process asks it to end its term.
    pub(crate) fn give_way(&mut self, now: Moment) {
        if self.term.is_some() {
            self.machine.give_way(now);
            self.turn(now);
        }
    }

    /// Does what the machine says until it says to wait.
    pub(crate) fn turn(&mut self, now: Moment) {
        for _ in 0..TURNS {
            let time = self.standing_clock.map_or_else(|| now.as_nanos().to_string(), str::to_owned);
            match self.machine.poll(&self.view(now), || time) {
                Output::Gate(change) => self.change(change, now),
                Output::Rewatch => self.rewatches = true,
                Output::Call(call) => self.begin(call, now),
                Output::GivenUp(_) => {
                    self.order = Order::StayAway;
                    self.lose(now);
                }
                Output::Wait(until) if until > now => {
                    self.until = until;
                    return;
                }
                Output::Wait(_) => {}
            }
        }
        self.must(false, "the machine turns in a circle");
    }

    fn begin(&mut self, call: Call, now: Moment) {
        self.must(self.flight.is_none(), "S5: two calls at once");
        let settled = now >= self.view(now).settles_at;
        match call.what {
            LeaseCall::Acquire => self.must(self.order == Order::Contend, "acquired under an order"),
            LeaseCall::Acknowledge => self.must(settled, "S4: acknowledged before the writes had ended"),
            LeaseCall::Release => {
                self.must(settled, "S4: released before the writes had ended");
                self.must(self.machine.is_mine(), "S5: released what is not its own");
                // The lock closes the gate first (rule S3).
                self.lose(now);
            }
            LeaseCall::Read | LeaseCall::Renew | LeaseCall::Ask => {}
        }
        self.flight = Some(Flight { call, sent: now, outcome: None });
    }

    fn must(&mut self, holds: bool, rule: &'static str) {
        if !holds {
            self.broken.get_or_insert(rule);
        }
    }

    /// The API server gets the call.
    pub(crate) fn land(&mut self, server: &mut Server) -> bool {
        let Some(flight) = self.flight.as_mut().filter(|flight| flight.outcome.is_none()) else {
            return false;
        };
        let Some(claim) = &flight.call.claim else {
            flight.outcome = Some(Ok(server.lease.clone()));
            return false;
        };
        let outcome = server.write(flight.call.seen.as_ref(), claim).map(Some);
        let written = outcome.is_ok();
        flight.outcome = Some(outcome);
        written
    }

    /// The answer comes, if the API server has one and it is not `lost`.
    pub(crate) fn answer(&mut self, server: &mut Server, lost: bool, now: Moment) {
        let Some(Flight { call, sent, outcome }) = self.flight.take() else { return };
        let answer = match (lost, outcome) {
            (false, Some(outcome)) => outcome,
            (_, outcome) => {
                if let (None, Some(claim)) = (outcome, call.claim) {
                    server.late.push((call.seen, claim));
                }
                Err(ErrLockKind::Timeout)
            }
        };
        if answer.is_ok() && matches!(call.what, LeaseCall::Acquire | LeaseCall::Renew) {
            self.renewed = sent;
        }
        let answer = answer.map_err(|kind| ErrLock::new(kind, "as the test has it"));
        self.machine.answered(answer, self.term.is_some(), now);
        self.turn(now);
    }

    /// The process dies, and another begins in its place, with its name.
    pub(crate) fn restart(&mut self, server: &mut Server, now: Moment) {
        self.lose(now);
        if let Some(Flight { call: Call { claim: Some(claim), seen, .. }, outcome: None, .. }) =
            self.flight.take()
        {
            server.late.push((seen, claim));
        }
        let Self { lands_until, late, standing_clock, .. } = *self;
        let mut fresh = Self::begun(&self.name, self.priority, self.timing, now);
        (fresh.lands_until, fresh.late, fresh.standing_clock) = (lands_until, late, standing_clock);
        *self = fresh;
    }
}
