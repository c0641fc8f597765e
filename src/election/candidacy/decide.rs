//! What a candidate does next, and when: a pure function of what it knows, of what it is told to do, and of the time.

use super::{contact::Doubt, judge::Decision, state::Candidacy};
use crate::{election::hooks::LeaseCall, leadership::Moment};

/// Calls that may fail before the lease is left to run out.
const ATTEMPTS: u32 = 3;

/// What the rest of the process says at one moment.
#[derive(Clone, Copy, Debug)]
pub(in crate::election) struct Inputs {
    pub(in crate::election) now: Moment,
    pub(in crate::election) task: Task,
    /// This process has a valid grant.
    pub(in crate::election) leads: bool,
    /// From when on no admitted write can take effect late (rule S4).
    pub(in crate::election) settles_at: Moment,
}

/// What the election is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Task {
    /// Contend, lead, contend again.
    Contend,
    /// Renew what is led in, acquire nothing more.
    Hold,
    /// Give up what is held; so many calls have failed on the way.
    GiveUp { failed: u32 },
    /// Acquire nothing, and give back what arrives late.
    StayAway,
}

/// What to do at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Next {
    /// Make this call.
    Call(LeaseCall),
    /// Nothing, until this moment or until there is news.
    Wait(Moment),
    /// The lease is given up, or is left to run out for this reason.
    GivenUp(Outcome),
}

/// A call, and the earliest moment for it; without a call, the moment to decide again.
type Due = (Option<LeaseCall>, Moment);

/// How the lease was given up, or why it is left to run out.
type Outcome = Result<(), &'static str>;

impl Candidacy {
    /// What to do at `inputs.now`. A wait is never over already.
    pub(in crate::election) fn next(&self, inputs: &Inputs) -> Next {
        let settles_at = inputs.settles_at.max(self.inherited_until);
        let inputs = &Inputs { settles_at, ..*inputs };
        let mut not_before = self.contact.not_before;
        let (call, due) = match inputs.task {
            Task::GiveUp { failed } => match self.give_back(inputs, failed) {
                Ok(due) => {
                    // What has failed before the order does not count.
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
        if doubt == Doubt::IsOld {
            return at_once(LeaseCall::Read);
        }
        let period = self.timing.retry_period();
        match self.decide(now, inputs.leads) {
            Decision::Renew => {
                let due = self.renewed.saturating_add(period.saturating_sub(self.contact.early));
                // A renewal tells as much as a read, and the deadline waits for it alone (rule S9).
                let reads = now < due && doubt != Doubt::None;
                if reads { at_once(LeaseCall::Read) } else { (Some(LeaseCall::Renew), due) }
            }
            Decision::Hold(until) => {
                sooner((None, until), (Some(LeaseCall::Renew), self.renewed.saturating_add(period)))
            }
            Decision::Open => at_once(LeaseCall::Renew),
            Decision::Read => at_once(LeaseCall::Read),
            _ if doubt != Doubt::None => at_once(LeaseCall::Read),
            // Another program may undo each acquisition at once: that must not become a flood of them.
            Decision::Take | Decision::Preempt => {
                (Some(LeaseCall::Acquire), self.claims.next_from(self.timing.pause()))
            }
            // Once the successor's time is over, there is something better to do than to spare it a wait.
            Decision::WaitUntil(until) => {
                let wait = sooner((None, until), (Some(LeaseCall::Read), self.contact.next_look));
                let acknowledgement = (Some(LeaseCall::Acknowledge), inputs.settles_at);
                if self.owes_in_time(inputs) { sooner(acknowledgement, wait) } else { wait }
            }
        }
    }

    /// What a candidate does that does not lead and is not to acquire anything: it gives back what it acquires all the same,
    /// by a claim that was under way. While it holds, that alone: what it has led in is given up when that is ordered.
    fn idle(&self, inputs: &Inputs) -> Due {
        // What could not be given up in time was left to run out, and is not touched any more.
        let in_time = !self.is_mine() || inputs.settles_at.max(inputs.now) < self.end();
        let gives_back = self.own.is_unused()
            || self.own.owes_an_acknowledgement()
            || inputs.task == Task::StayAway && in_time;
        match self.give_back(inputs, 0) {
            Ok(due) if gives_back => due,
            Err(Err(_)) if gives_back => (Some(LeaseCall::Read), self.contact.next_look),
            _ => (None, inputs.now.saturating_add(self.timing.retry_period())),
        }
    }

    /// Gives the lease up if it is this candidate's (rules S4 and S5), and tells a preempting holder that the last write has
    /// ended; so many calls have `failed` on the way. An error if there is nothing left to do, or to be done.
    fn give_back(&self, inputs: &Inputs, failed: u32) -> Result<Due, Outcome> {
        let Inputs { now, settles_at, .. } = *inputs;
        let doubt = self.contact.doubt;
        // Once: all that it spares is the successor's wait.
        if self.owes_in_time(inputs) && failed == 0 {
            let reads = doubt == Doubt::IsOld;
            let call = if reads { LeaseCall::Read } else { LeaseCall::Acknowledge };
            return Ok((Some(call), settles_at));
        }
        let mine = self.is_mine();
        if !mine && !self.may_become_mine() {
            // Nothing to give up, whatever the API server has to say.
            return Err(Ok(()));
        }
        if now < settles_at {
            let too_late = mine && self.end() <= settles_at;
            let reason = "a write that ended without an answer may still land";
            return if too_late { Err(Err(reason)) } else { Ok((None, settles_at)) };
        }
        if failed >= ATTEMPTS {
            return Err(Err("the API server could not be told"));
        }
        if doubt != Doubt::None {
            return Ok((Some(LeaseCall::Read), now));
        }
        if !mine {
            return Err(Err("an acquisition that was not answered may still land"));
        }
        if self.overtaken(now).is_some() {
            return Err(Err("its former holder may still be writing"));
        }
        Ok((Some(LeaseCall::Release), now))
    }

    /// Whether a candidate that has preempted this one is to hear of the end of its writes, and will before its wait is over.
    fn owes_in_time(&self, inputs: &Inputs) -> bool {
        self.own.owes_an_acknowledgement() && inputs.settles_at < self.end()
    }

    /// When the lease ends for the others at the earliest: they count from when they heard of its last renewal, or of a
    /// claim whose answer this candidate never got.
    fn end(&self) -> Moment {
        self.renewed.saturating_add(self.timing.lease_duration())
    }
}

/// What is due first; of two at one moment, the first.
fn sooner(one: Due, other: Due) -> Due {
    if one.1 <= other.1 { one } else { other }
}
