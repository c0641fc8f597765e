//! A candidate among others on one lease: it hears of it late, and each of its calls may be lost, be answered late or not
//! at all, or land late.

use super::{Candidacy, Decision, Inputs, Next, Task, rivals_server::Server};
use crate::{
    election::{hooks::LeaseCall, preemption::Priority},
    leadership::Moment,
    lease::{Claim, ErrLockKind, Identity, LeaseEvent, LeaseRecord, LeaseTiming},
};
use std::{collections::VecDeque, time::Duration};

const NEVER: Moment = Moment::from_nanos(0);

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) what: LeaseCall,
    pub(super) sent: Moment,
    pub(super) before: Option<String>,
    pub(super) seen: Option<LeaseRecord>,
    pub(super) claim: Option<Claim>,
    /// What the API server has made of it.
    pub(super) outcome: Option<Result<Option<LeaseRecord>, ErrLockKind>>,
}

#[derive(Clone, Debug)]
pub(super) struct Rival {
    pub(super) name: String,
    pub(super) priority: Option<&'static str>,
    pub(super) timing: LeaseTiming,
    /// Whether that has agreed in this term which must agree before its gate opens, if anything must.
    pub(super) agreed: Option<bool>,
    pub(super) candidacy: Candidacy,
    pub(super) task: Task,
    pub(super) suspended: bool,
    /// The end of the candidate's leadership.
    pub(super) deadline: Option<Moment>,
    pub(super) closing: bool,
    pub(super) writing: bool,
    pub(super) unanswered: Moment,
    /// When the last thing that it has sent can land no more.
    pub(super) lands_until: Moment,
    /// How long after its end a write may land.
    pub(super) late: Duration,
    /// The wall clock, if it stands still.
    pub(super) standing_clock: Option<&'static str>,
    pub(super) call: Option<Call>,
    pub(super) inbox: VecDeque<LeaseEvent>,
    /// The uid of the last lease object of whose deletion it has heard.
    pub(super) deleted: Option<String>,
}

fn candidacy(name: &str, priority: Option<&str>, timing: LeaseTiming) -> Candidacy {
    let ranked = |key| Priority::ranked(key, ["high", "low", ""]).unwrap_or_else(|_| unreachable!());
    Candidacy::new(Identity::new(name).unwrap(), timing, priority.map(ranked))
}

impl Rival {
    pub(super) fn new(name: &str, priority: Option<&'static str>) -> Self {
        Self::timed(name, priority, LeaseTiming::fast())
    }

    /// A candidate with these times.
    pub(super) fn timed(name: &str, priority: Option<&'static str>, timing: LeaseTiming) -> Self {
        Self {
            name: name.to_owned(),
            priority,
            timing,
            agreed: None,
            candidacy: candidacy(name, priority, timing),
            task: Task::Contend,
            suspended: false,
            deadline: None,
            closing: false,
            writing: false,
            unanswered: NEVER,
            lands_until: NEVER,
            late: timing.tolerated_skew(),
            standing_clock: None,
            call: None,
            inbox: VecDeque::new(),
            deleted: None,
        }
    }

    pub(super) fn asking(mut self) -> Self {
        self.agreed = Some(false);
        self.candidacy = self.candidacy.asks_before_opening();
        self
    }

    pub(super) fn agree(&mut self) {
        if self.candidacy.awaits_opening() {
            self.candidacy.opening.agree();
            self.agreed = Some(true);
        }
    }

    pub(super) fn leads(&self, now: Moment) -> bool {
        self.deadline.is_some_and(|deadline| now < deadline)
    }

    pub(super) fn can_write(&self, now: Moment) -> bool {
        self.leads(now) && !self.closing
    }

    /// The write under way has ended without an answer, by the deadline at the latest.
    pub(super) fn write_is_lost(&mut self, now: Moment) {
        if std::mem::take(&mut self.writing) {
            self.unanswered = now;
            let end = self.deadline.map_or(now, |deadline| now.min(deadline));
            self.lands_until = self.lands_until.max(end.saturating_add(self.late));
        }
    }

    /// What it has not noticed has happened all the same: its term is over, and its write may land.
    pub(super) fn runs_out(&mut self, now: Moment) {
        if self.writing && !self.leads(now) {
            let end = self.deadline.unwrap_or(now);
            self.lands_until = self.lands_until.max(end.saturating_add(self.late));
        }
    }

    /// Its watch loses all news, and shows the lease anew.
    pub(super) fn relists(&mut self, lease: Option<LeaseRecord>, now: Moment) {
        self.candidacy.contact.watch_ends(now);
        self.inbox.clear();
        self.candidacy.contact.watch_begins(now);
        self.inbox.extend(lease.map(LeaseEvent::Seen));
    }

    pub(super) fn lose(&mut self, now: Moment) {
        self.write_is_lost(now);
        self.deadline = None;
        self.closing = false;
    }

    pub(super) fn act(&mut self, now: Moment) {
        if self.deadline.is_none() {
        } else if self.candidacy.own.owes_an_acknowledgement() {
            self.closing = true;
        } else if !self.candidacy.is_current() || !self.candidacy.own.is_open() {
            self.lose(now);
        }
    }

    pub(super) fn hear(&mut self, now: Moment) {
        match self.inbox.pop_front() {
            Some(LeaseEvent::Seen(record)) => {
                self.candidacy.contact.watch_tells(&record, now);
                self.candidacy.observe(record, now);
            }
            Some(LeaseEvent::Deleted(last)) => {
                self.candidacy.contact.watch_tells(&last, now);
                self.candidacy.observe_absence(Some(&last), now);
                self.deleted = Some(last.uid().to_owned());
            }
            None => return,
        }
        self.act(now);
    }

    pub(super) fn order(&mut self, task: Task, now: Moment) {
        self.task = task;
        match task {
            Task::Contend => self.suspended = false,
            Task::GiveUp { .. } => {
                self.suspended = true;
                self.closing = self.deadline.is_some();
                // The time for draining is up.
                if self.writing {
                    self.lose(now);
                }
            }
            Task::Hold | Task::StayAway => {}
        }
    }

    /// Decides what is next, and begins it. Returns until when it waits.
    pub(super) fn turn(&mut self, now: Moment) -> Moment {
        if self.call.is_some() {
            return now;
        }
        if self.deadline.is_some() && !self.leads(now)
            || self.candidacy.own.owes_an_acknowledgement() && !self.writing
        {
            self.lose(now);
        }
        let last = self.unanswered.max(if self.writing { now } else { NEVER });
        let settles_at =
            if last == NEVER { NEVER } else { last.saturating_add(self.timing.tolerated_skew()) };
        let inputs = Inputs { now, task: self.task, leads: self.deadline.is_some(), settles_at };
        match self.candidacy.next(&inputs) {
            Next::Call(call) => self.begin(call, now),
            Next::Wait(until) => return until,
            Next::GivenUp(_) => {
                self.lose(now);
                self.task = Task::StayAway;
            }
        }
        now
    }

    pub(super) fn begin(&mut self, what: LeaseCall, now: Moment) {
        let before = self.candidacy.version().map(str::to_owned);
        let seen = self.candidacy.record().cloned();
        let time = self.wall_clock(now);
        let claim = match what {
            // An acquisition begins with a read.
            LeaseCall::Read | LeaseCall::Acquire => None,
            LeaseCall::Join => {
                self.candidacy.tries_to_join(now);
                self.candidacy.joining(now)
            }
            LeaseCall::Leave => {
                self.candidacy.has_left();
                self.candidacy.leaving()
            }
            LeaseCall::Renew => Some(self.candidacy.renewal(now, time)),
            LeaseCall::Acknowledge => {
                let Some(claim) = self.candidacy.acknowledgement() else { return };
                Some(claim)
            }
            LeaseCall::Release => {
                self.lose(now);
                Some(self.candidacy.release(now, time))
            }
        };
        self.candidacy.contact.begin(now);
        self.call = Some(Call { what, sent: now, before, seen, claim, outcome: None });
    }

    fn wall_clock(&self, now: Moment) -> String {
        self.standing_clock.map_or_else(|| now.as_nanos().to_string(), str::to_owned)
    }

    /// The API server gets the call.
    pub(super) fn land(&mut self, server: &mut Server) -> bool {
        let Some(call) = self.call.as_mut().filter(|call| call.outcome.is_none()) else { return false };
        let Some(claim) = &call.claim else {
            call.outcome = Some(Ok(server.lease.clone()));
            return false;
        };
        let outcome = server.write(call.seen.as_ref(), claim).map(Some);
        let written = outcome.is_ok();
        call.outcome = Some(outcome);
        written
    }

    pub(super) fn fail(&mut self, kind: ErrLockKind, now: Moment) {
        self.candidacy.contact.fail(kind, self.deadline.is_some(), now);
        // The elector counts the first conflicts as no failures.
        if let Task::GiveUp { failed } = &mut self.task
            && kind != ErrLockKind::Conflict
        {
            *failed += 1;
        }
    }

    /// The answer comes, if the API server has one and it is not `lost`.
    pub(super) fn answer(&mut self, server: &mut Server, lost: bool, now: Moment) {
        let Some(call) = self.call.take() else { return };
        let outcome = match (lost, call.outcome) {
            (false, Some(outcome)) => outcome,
            (_, outcome) => {
                if let (None, Some(claim)) = (outcome, call.claim) {
                    server.late.push((call.seen, claim));
                }
                return self.fail(ErrLockKind::Timeout, now);
            }
        };
        match (call.what, outcome) {
            (LeaseCall::Read | LeaseCall::Acquire, Ok(record)) if call.claim.is_none() => {
                self.candidacy.observe_read(record, call.before.as_deref(), now);
                self.act(now);
                self.candidacy.contact.recover(LeaseCall::Read, now);
                let takes = matches!(
                    self.candidacy.decide(now, false),
                    Decision::Take | Decision::Succeed | Decision::Preempt
                );
                if call.what == LeaseCall::Acquire && self.task == Task::Contend && takes {
                    let claim = self.candidacy.acquisition(now, self.wall_clock(now));
                    self.agreed = self.agreed.map(|_| false);
                    let seen = self.candidacy.record().cloned();
                    self.candidacy.contact.begin(now);
                    let what = LeaseCall::Acquire;
                    self.call =
                        Some(Call { what, sent: now, before: None, seen, claim: Some(claim), outcome: None });
                }
            }
            (what, Ok(record)) => {
                if what == LeaseCall::Acquire {
                    self.candidacy.claim_is_settled();
                }
                self.candidacy.observe(record.unwrap(), now);
                self.act(now);
                self.candidacy.contact.recover(what, now);
                if matches!(what, LeaseCall::Acquire | LeaseCall::Renew) {
                    self.stands(call.sent, now);
                }
            }
            (_, Err(ErrLockKind::NotFound)) if call.seen.is_some() => {
                self.candidacy.observe_absence(None, now);
                self.act(now);
            }
            (_, Err(kind)) => self.fail(kind, now),
        }
    }

    pub(super) fn stands(&mut self, sent: Moment, now: Moment) {
        if !self.candidacy.is_current() {
            return;
        }
        let waits = self.candidacy.is_held_back(sent);
        self.candidacy.stood(sent);
        let deadline = sent.saturating_add(self.timing.renew_deadline());
        if self.deadline.is_some() {
            if self.leads(now) {
                self.deadline = self.deadline.max(Some(deadline));
            }
        } else if !waits && self.task == Task::Contend && !self.suspended && now < deadline {
            assert_ne!(self.agreed, Some(false), "opened without an agreement");
            self.deadline = Some(deadline);
            self.closing = false;
            let term = self.candidacy.record().unwrap().term();
            self.candidacy.opened(term);
        }
    }

    /// The process dies, and another begins in its place, with its name.
    pub(super) fn restart(&mut self, server: &mut Server, now: Moment) {
        self.lose(now);
        if let Some(Call { claim: Some(claim), outcome: None, seen, .. }) = self.call.take() {
            server.late.push((seen, claim));
        }
        let Self { lands_until, late, standing_clock, .. } = *self;
        let mut fresh = Self::timed(&self.name, self.priority, self.timing);
        fresh.candidacy.early = self.candidacy.early.anew();
        let fresh = if self.agreed.is_some() { fresh.asking() } else { fresh };
        *self = Self { lands_until, late, standing_clock, ..fresh };
    }
}
