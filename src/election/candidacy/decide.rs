//! Decides what a candidate does next, and when. The decision depends only on what it knows, on its orders, and on
//! the time.

use super::{contact::Doubt, judge::Decision, state::Candidacy};
use crate::{
    defect,
    election::{hooks::LeaseCall, preemption::Handover},
    leadership::Moment,
};
use std::time::Duration;

/// How many calls may fail before the lease is left to expire.
const ATTEMPTS: u32 = 3;

/// Why a candidate cannot release a lease that names it (rule S5).
const LEFT: &str = "an earlier process with this identity left the lease";

/// The state of the rest of the process at one moment.
#[derive(Clone, Copy, Debug)]
pub(in crate::election) struct Inputs {
    pub(in crate::election) now: Moment,
    pub(in crate::election) task: Task,
    /// Whether this process has a valid grant.
    pub(in crate::election) leads: bool,
    /// The moment after which no admitted write can take effect (rule S4).
    pub(in crate::election) settles_at: Moment,
}

/// The order that the election follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Task {
    /// Contend, lead, and contend again.
    Contend,
    /// Renew a held lease, but acquire nothing.
    Hold,
    /// Release a held lease. `failed` calls have failed since this order.
    GiveUp { failed: u32 },
    /// Acquire nothing, and release a lease that a late answer brings.
    StayAway,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Next {
    /// Make this call.
    Call(LeaseCall),
    /// Do nothing until this moment or until there is news.
    Wait(Moment),
    /// The lease is released, or is left to expire for this reason.
    GivenUp(Outcome),
}

/// A call and the earliest moment for it. If there is no call, the moment to decide again.
pub(super) type Due = (Option<LeaseCall>, Moment);

/// Whether the lease was released, or why it is left to expire.
type Outcome = Result<(), &'static str>;

impl Candidacy {
    /// Decides what to do at `inputs.now`. A wait always ends after that.
    pub(in crate::election) fn next(&self, inputs: &Inputs) -> Next {
        let settles_at =
            inputs.settles_at.max(self.inherited_until).max(self.successor_waits_until(inputs.now));
        let inputs = &Inputs { settles_at, ..*inputs };
        let mut not_before = self.contact.not_before;
        let (call, due) = match inputs.task {
            Task::GiveUp { failed } => match self.give_back(inputs, failed) {
                Ok(due) => {
                    // Failures before the order do not count.
                    if failed == 0 {
                        not_before = inputs.now;
                    }
                    due
                }
                Err(outcome) => return Next::GivenUp(outcome),
            },
            Task::Hold | Task::StayAway if !inputs.leads => self.idle(inputs),
            Task::Contend | Task::Hold | Task::StayAway => self.contend(inputs),
        };
        match call {
            Some(call) if inputs.now >= due.max(not_before) => Next::Call(call),
            Some(_) => Next::Wait(due.max(not_before)),
            None => Next::Wait(due),
        }
    }

    fn contend(&self, inputs: &Inputs) -> Due {
        let now = inputs.now;
        let at_once = |call| (Some(call), now);
        let doubt = self.contact.doubt;
        if doubt >= Doubt::IsOld {
            return at_once(LeaseCall::Read);
        }
        let period = self.timing.retry_period();
        match self.decide(now, inputs.leads) {
            Decision::Renew => {
                let due = self.next_renewal();
                // A renewal shows as much as a read, and the deadline depends on the renewal only (rule S9).
                let reads =
                    doubt != Doubt::None && (now < due || defect::is_back("reads-instead-of-renewing"));
                if reads { at_once(LeaseCall::Read) } else { (Some(LeaseCall::Renew), due) }
            }
            Decision::Hold(until) => {
                // An acknowledgement does not speak of the others, so the lease has to name them at once.
                let said = self.record().and_then(Handover::of).is_some_and(|handover| handover.done);
                let again = said && self.formers.until(now).is_some();
                let due = if again { now } else { self.renewed.saturating_add(period) };
                sooner((None, until), (Some(LeaseCall::Renew), due))
            }
            Decision::Open => at_once(LeaseCall::Renew),
            Decision::GiveBack => {
                let renewal = (Some(LeaseCall::Renew), self.renewed.saturating_add(period));
                self.give_back(inputs, 0).map_or(renewal, |release| sooner(release, renewal))
            }
            Decision::GiveWay => self.give_way(inputs),
            Decision::Read => at_once(LeaseCall::Read),
            _ if doubt != Doubt::None => at_once(LeaseCall::Read),
            // Another program may undo each acquisition at once. This limits how often the candidate acquires.
            Decision::Take => {
                let from = self.claims.next_from(self.timing.pause()).max(self.turn());
                (Some(LeaseCall::Acquire), from)
            }
            Decision::Succeed | Decision::Preempt => {
                (Some(LeaseCall::Acquire), self.claims.next_from(self.timing.pause()))
            }
            Decision::Await => (Some(LeaseCall::Read), self.contact.next_look),
            // Once the successor's time is over, there are better things to do than to shorten its wait.
            Decision::WaitUntil(until) => {
                let wait = sooner((None, until), (Some(LeaseCall::Read), self.next_look()));
                let acknowledgement = (Some(LeaseCall::Acknowledge), inputs.settles_at);
                if self.owes_in_time(inputs) {
                    sooner(acknowledgement, wait)
                } else {
                    self.joins_from(inputs).map_or(wait, |join| sooner(join, wait))
                }
            }
        }
    }

    /// What a candidate does that does not lead and should not acquire. It releases a lease that an earlier claim
    /// still brings. With [`Task::Hold`] it does only that: a lease that it led in is released by a later order.
    fn idle(&self, inputs: &Inputs) -> Due {
        // If the lease could not be released in time, it was left to expire. Do not touch it again.
        let in_time = !self.is_mine() || inputs.settles_at.max(inputs.now) < self.end();
        if inputs.task == Task::StayAway && self.should_leave() {
            return (Some(LeaseCall::Leave), inputs.now);
        }
        let keeps = self.own.is_unused() && defect::is_back("late-acquisition-kept");
        let gives_back = self.own.is_unused()
            || self.own.owes_an_acknowledgement()
            || inputs.task == Task::StayAway && in_time;
        match self.give_back(inputs, 0) {
            Ok(due) if gives_back && !keeps => due,
            Err(Err(reason)) if gives_back && reason != LEFT => {
                (Some(LeaseCall::Read), self.contact.next_look)
            }
            _ => (None, inputs.now.saturating_add(self.timing.retry_period())),
        }
    }

    /// Releases the lease if it belongs to this candidate (rules S4 and S5), and tells a preempting holder that the
    /// last write has ended. `failed` calls have failed since the order. Returns an error if there is nothing left to
    /// do, or nothing that can be done.
    fn give_back(&self, inputs: &Inputs, failed: u32) -> Result<Due, Outcome> {
        let Inputs { now, settles_at, .. } = *inputs;
        let doubt = self.contact.doubt;
        // Try only once: it only shortens the successor's wait.
        if self.owes_in_time(inputs) && failed == 0 {
            let reads = doubt >= Doubt::IsOld;
            let call = if reads { LeaseCall::Read } else { LeaseCall::Acknowledge };
            return Ok((Some(call), settles_at));
        }
        let mine = self.is_mine() || defect::is_back("releases-another-term");
        if self.should_leave() && failed == 0 {
            return Ok((Some(LeaseCall::Leave), now));
        }
        let forgets = defect::is_back("forgets-an-unanswered-acquisition");
        if !mine && (forgets || !self.may_become_mine()) {
            // There is nothing to release, whatever the API server answers.
            return Err(if self.is_left_to_this_name() { Err(LEFT) } else { Ok(()) });
        }
        if now < settles_at && !defect::is_back("release-after-cut-drain") {
            let too_late = mine && self.end() <= settles_at;
            let reason = "a write that ended without an answer may still take effect";
            return if too_late { Err(Err(reason)) } else { Ok((None, settles_at)) };
        }
        if failed >= ATTEMPTS {
            return Err(Err("the calls to the API server failed"));
        }
        if doubt != Doubt::None {
            return Ok((Some(LeaseCall::Read), now));
        }
        if !mine {
            return Err(Err("an unanswered acquisition may still take effect"));
        }
        if self.formers.until(now).is_some() {
            return Err(Err("the former holder may still be writing"));
        }
        Ok((Some(LeaseCall::Release), now))
    }

    /// Whether the lease names this candidate, but holds no claim of this process. So others have to wait for its end.
    fn is_left_to_this_name(&self) -> bool {
        !self.is_mine() && self.record().is_some_and(|record| self.is_named_in(record))
    }

    /// Whether a candidate that preempted this one should learn of the end of its writes, and can before its wait is
    /// over.
    fn owes_in_time(&self, inputs: &Inputs) -> bool {
        self.own.owes_an_acknowledgement() && inputs.settles_at < self.end()
    }

    /// Until when a successor has to wait for the holders before this candidate that may still be writing. It hears of
    /// the end of their writes only from this candidate.
    pub(super) fn successor_waits_until(&self, now: Moment) -> Moment {
        let former = self.formers.until(now).filter(|_| self.own.owes_an_acknowledgement());
        former.unwrap_or(Moment::from_nanos(0))
    }

    /// When a follower reads the lease if there is no news. In a crowd, all followers would read when the holder falls
    /// silent. So those that are not next in line trust their watch as long as the holder's time runs.
    fn next_look(&self) -> Moment {
        let trusts = self.contact.is_watching() && self.crowd.is_far_back(&self.identity);
        let longer = if trusts { self.timing.lease_duration() } else { Duration::ZERO };
        self.contact.next_look.saturating_add(longer)
    }

    /// When a leader renews next.
    pub(super) fn next_renewal(&self) -> Moment {
        let period = self.timing.retry_period().saturating_sub(self.contact.early);
        self.renewed.saturating_add(period)
    }

    /// The earliest moment at which the lease ends for the other candidates. They count from when they saw its last
    /// renewal, or a claim whose answer this candidate never got.
    pub(super) fn end(&self) -> Moment {
        self.renewed.saturating_add(self.timing.lease_duration())
    }
}

/// The earlier of the two; the first if they are equal.
pub(super) fn sooner(one: Due, other: Due) -> Due {
    if one.1 <= other.1 { one } else { other }
}
