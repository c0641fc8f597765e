//! A candidate among others on one lease: it hears of it late, and each of its calls may be lost, be answered late or not
//! at all, or land late.
//!
//! The shipped machine decides everything. After each event the process asks it what to do until it says to wait, and makes
//! its gate what the machine says, as `src/election/task.rs` does.

use super::server::Server;
use jiff::{SignedDuration, Timestamp};
use kube_leader_gate::{
    Identity, LeaseTiming,
    election::Priority,
    internal::{Busy, CLAIM, Call, Gate, Intent, LeaseCall, Machine, Next, WatchNews},
    leadership::{Loss, Moment, Term},
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseRecord},
};
use std::{collections::VecDeque, time::Duration};

pub(super) const ALWAYS: Moment = Moment::from_nanos(0);
pub(super) const NEVER: Moment = Moment::from_nanos(u64::MAX);

/// More turns at one moment are a circle.
const TURNS: usize = 16;

/// A new process of a seat has a number that is so much higher than the one before.
const NEXT_LIFE: u64 = 100;

/// The times of all runs count from one moment.
pub(super) fn at(seconds: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000).saturating_add(Duration::from_secs(seconds))
}

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) call: Call,
    pub(super) sent: Moment,
    /// What the API server has made of it.
    pub(super) outcome: Option<Result<Option<LeaseRecord>, ErrLockKind>>,
}

/// The shipped machine, and what a process has around it: a gate, a watch, and a call under way.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    pub(super) name: String,
    process: u64,
    pub(super) priority: Option<&'static str>,
    pub(super) timing: LeaseTiming,
    pub(super) machine: Machine,
    intent: Intent,
    /// Until when the machine waits.
    pub(super) until: Moment,
    /// Its order to stop is carried out.
    pub(super) has_stopped: bool,
    pub(super) gate: Gate,
    /// The last term that the gate was opened for.
    pub(super) used: Option<Term>,
    pub(super) writing: bool,
    unanswered: Moment,
    /// When the last thing that it has sent can land no more.
    pub(super) lands_until: Moment,
    /// How long after its end a write may land.
    pub(super) late: Duration,
    /// The wall clock, if it stands still.
    pub(super) standing_clock: Option<Timestamp>,
    pub(super) flight: Option<Flight>,
    /// When the last claim was sent that was answered.
    claimed: Moment,
    pub(super) inbox: VecDeque<LeaseEvent>,
    /// The uid of the last lease object of whose deletion it has heard.
    pub(super) deleted: Option<String>,
    /// The rule that it has broken.
    pub(super) broken: Option<&'static str>,
}

impl Rival {
    /// A candidate with these times. No two have the same number.
    pub(super) fn new(name: &str, process: u64, priority: Option<&'static str>, timing: LeaseTiming) -> Self {
        Self::begun(name, process, priority, timing, at(0))
    }

    fn begun(
        name: &str,
        process: u64,
        priority: Option<&'static str>,
        timing: LeaseTiming,
        now: Moment,
    ) -> Self {
        let ranked = |key| Priority::ranked(key, ["high", "low", ""]).unwrap_or_else(|_| unreachable!());
        // A process that begins in its place is the next container of its pod.
        let pod = Some(format!("pod-of-{name}"));
        let identity = Identity::new(name).unwrap();
        let mut machine = Machine::new(identity, pod, process, priority.map(ranked), timing);
        machine.handle_watch(WatchNews::Up, now);
        Self {
            name: name.to_owned(),
            process,
            priority,
            timing,
            machine,
            intent: Intent::Contend,
            until: now,
            has_stopped: false,
            gate: Gate::Shut(Loss::Abandoned),
            used: None,
            writing: false,
            unanswered: ALWAYS,
            lands_until: ALWAYS,
            late: timing.safety_margin(),
            standing_clock: None,
            flight: None,
            claimed: ALWAYS,
            inbox: VecDeque::new(),
            deleted: None,
            broken: None,
        }
    }

    // --- the gate ---

    /// The end of its term, if it has one.
    pub(super) fn deadline(&self) -> Option<Moment> {
        match self.gate {
            Gate::Open { deadline, .. } | Gate::Closing { deadline } => Some(deadline),
            Gate::Shut(_) => None,
        }
    }

    pub(super) fn leads(&self, now: Moment) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline)
    }

    pub(super) fn can_write(&self, now: Moment) -> bool {
        self.leads(now) && matches!(self.gate, Gate::Open { .. })
    }

    /// The term that its gate is open for.
    pub(super) fn term(&self) -> Option<&Term> {
        if let Gate::Open { term, .. } = &self.gate { Some(term) } else { None }
    }

    /// Whether it ends its term in good order.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.gate, Gate::Closing { .. })
    }

    /// The write under way has ended, with an answer or without one, by the deadline at the latest.
    pub(super) fn write_ends(&mut self, answered: bool, now: Moment) {
        if std::mem::take(&mut self.writing) && !answered {
            self.unanswered = now;
            let end = self.deadline().map_or(now, |deadline| now.min(deadline));
            self.lands_until = self.lands_until.max(end.saturating_add(self.late));
        }
        self.until = now;
    }

    /// What it has not noticed has happened all the same: its term is over, and its write may land.
    pub(super) fn runs_out(&mut self, now: Moment) {
        if self.writing && !self.leads(now) {
            let end = self.deadline().unwrap_or(now);
            self.lands_until = self.lands_until.max(end.saturating_add(self.late));
        }
    }

    fn lose(&mut self, loss: Loss, now: Moment) {
        self.write_ends(false, now);
        self.gate = Gate::Shut(loss);
    }

    /// Makes the gate what it has to be now.
    fn apply_gate(&mut self, now: Moment) {
        let gate = self.machine.gate(now);
        match &gate {
            Gate::Shut(loss) => self.lose(*loss, now),
            Gate::Closing { .. } => self.gate = gate,
            Gate::Open { term, deadline } => {
                let from_the_claim = self.claimed.saturating_add(self.timing.renew_deadline());
                self.must(*deadline <= from_the_claim, "S1: a deadline that counts from no answered claim");
                let same = |own: &Term| {
                    own.lease_uid() == term.lease_uid() && own.transitions() == term.transitions()
                };
                if !self.term().is_some_and(same) {
                    self.must(self.intent == Intent::Contend, "S11: a gate opened under an order");
                    self.lose(Loss::Taken, now);
                }
                self.used = Some(Term::new(term.lease_uid(), term.transitions()));
                self.gate = gate;
            }
        }
    }

    fn busy(&self, now: Moment) -> Busy {
        let earlier = self.machine.predecessor_seen().unwrap_or(ALWAYS);
        let last = self.unanswered.max(earlier).max(if self.writing { now } else { ALWAYS });
        let settle_at =
            if last == ALWAYS { ALWAYS } else { last.saturating_add(self.timing.safety_margin()) };
        Busy { writes: self.writing, settle_at, ..Busy::default() }
    }

    // --- what happens ---

    /// Its watch loses all news, and shows the lease anew.
    pub(super) fn relists(&mut self, lease: Option<LeaseRecord>, now: Moment) {
        self.machine.handle_watch(WatchNews::Down(None), now);
        self.inbox.clear();
        self.inbox.extend(lease.map(LeaseEvent::Seen));
        self.machine.handle_watch(WatchNews::Up, now);
        self.turn(now);
    }

    pub(super) fn hear(&mut self, now: Moment) {
        let Some(event) = self.inbox.pop_front() else { return };
        if let LeaseEvent::Deleted(last) = &event {
            self.deleted = Some(last.uid().to_owned());
        }
        self.machine.handle_watch(WatchNews::Event(event), now);
        self.turn(now);
    }

    pub(super) fn order(&mut self, intent: Intent, now: Moment) {
        self.machine.handle_order(intent);
        (self.intent, self.has_stopped) = (intent, false);
        self.turn(now);
    }

    /// Something in the process asks it to end its term.
    pub(super) fn give_way(&mut self, now: Moment) {
        if let Some(term) = self.used.clone().filter(|_| self.leads(now)) {
            self.machine.give_way(&term);
            self.turn(now);
        }
    }

    /// Does what the machine says until it says to wait.
    pub(super) fn turn(&mut self, now: Moment) {
        for _ in 0..TURNS {
            self.apply_gate(now);
            let since = SignedDuration::from_nanos(now.as_nanos().cast_signed());
            let wall = self.standing_clock.unwrap_or_else(|| Timestamp::UNIX_EPOCH + since);
            let next = self.machine.poll(self.busy(now), wall, now);
            self.apply_gate(now);
            match next {
                Next::Call(call) => self.begin(call, now),
                Next::Done(_) => {
                    self.has_stopped = true;
                    self.until = now.saturating_add(self.timing.retry_period());
                    return;
                }
                Next::Wait(until) if until > now => {
                    self.until = until;
                    return;
                }
                Next::Wait(_) => {}
            }
        }
        self.must(false, "the machine turns in a circle");
    }

    fn begin(&mut self, call: Call, now: Moment) {
        self.must(self.flight.is_none(), "S5: two calls at once");
        let busy = self.busy(now);
        match call.what {
            LeaseCall::Acquire => self.must(self.intent == Intent::Contend, "acquired under an order"),
            LeaseCall::Release => {
                let ended = !busy.writes && now >= busy.settle_at;
                self.must(ended, "S4: released before the writes had ended");
                self.must(
                    call.seen.as_ref().is_some_and(|it| self.holds(it)),
                    "S5: released what is not its own",
                );
                // The lock closes the gate first (rule S3).
                self.lose(Loss::Released, now);
            }
            _ => {}
        }
        self.flight = Some(Flight { call, sent: now, outcome: None });
    }

    /// Whether the lease holds a claim of this process, or of one before it in its seat, which has ended.
    pub(super) fn holds(&self, lease: &LeaseRecord) -> bool {
        let is_of_this_seat = |process: u64| process % NEXT_LIFE == self.process % NEXT_LIFE;
        lease.holder() == Some(&*self.name) && process_of(lease).is_some_and(is_of_this_seat)
    }

    fn must(&mut self, holds: bool, rule: &'static str) {
        if !holds {
            self.broken.get_or_insert(rule);
        }
    }

    /// The API server gets the call.
    pub(super) fn land(&mut self, server: &mut Server) {
        let Some(flight) = self.flight.as_mut().filter(|flight| flight.outcome.is_none()) else { return };
        flight.outcome = Some(match &flight.call.update {
            None => Ok(server.lease.clone()),
            Some(claim) => server.write(flight.call.seen.as_ref(), claim).map(Some),
        });
    }

    /// The answer comes, if the API server has one and it is not `lost`.
    pub(super) fn answer(&mut self, server: &mut Server, lost: bool, now: Moment) {
        let Some(Flight { call, sent, outcome }) = self.flight.take() else { return };
        let answer = match (lost, outcome) {
            (false, Some(outcome)) => outcome,
            (_, outcome) => {
                if let (None, Some(claim)) = (outcome, call.update) {
                    server.late.push((call.seen, claim));
                }
                Err(ErrLockKind::Timeout)
            }
        };
        if answer.is_ok() && matches!(call.what, LeaseCall::Acquire | LeaseCall::Renew) {
            self.claimed = sent;
        }
        // What it says is for the log.
        let _ =
            self.machine.handle_answer(answer.map_err(|kind| ErrLock::new(kind, "as the test has it")), now);
        self.turn(now);
    }

    /// The process dies, and another begins in its place, with its name.
    pub(super) fn restart(&mut self, server: &mut Server, now: Moment) {
        self.lose(Loss::Abandoned, now);
        if let Some(Flight { call: Call { update: Some(claim), seen, .. }, outcome: None, .. }) =
            self.flight.take()
        {
            server.late.push((seen, claim));
        }
        let Self { lands_until, late, standing_clock, process, .. } = *self;
        let mut fresh = Self::begun(&self.name, process + NEXT_LIFE, self.priority, self.timing, now);
        (fresh.lands_until, fresh.late, fresh.standing_clock) = (lands_until, late, standing_clock);
        *self = fresh;
    }
}

/// The number of the process that has written the claim of this lease.
fn process_of(lease: &LeaseRecord) -> Option<u64> {
    let claim = lease.annotation(CLAIM)?.as_str()?;
    u64::from_str_radix(claim.split(' ').next()?, 16).ok()
}

/// How many processes have had the seat before the one that has written the claim of this lease.
pub(super) fn life_of(lease: &LeaseRecord) -> Option<u8> {
    u8::try_from(process_of(lease)? / NEXT_LIFE).ok()
}
