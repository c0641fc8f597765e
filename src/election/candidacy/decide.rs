//! What a candidate does next, and when: a pure function of what it knows, of what it is told to do, and of the time.

use super::{Candidacy, contact::Doubt, judge::Decision};
use crate::leadership::Moment;

/// Calls that may fail before the lease is left to run out.
const ATTEMPTS: u32 = 3;

/// What the rest of the process says at one moment.
#[derive(Clone, Copy, Debug)]
pub(in crate::election) struct Inputs {
    pub(in crate::election) now: Moment,
    pub(in crate::election) task: Task,
    /// This process has a valid grant.
    pub(in crate::election) leads: bool,
    /// When the last successful renewal was sent.
    pub(in crate::election) renewed: Moment,
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
    Call(Call),
    /// Nothing, until this moment or until there is news.
    Wait(Moment),
    /// The lease is given up, or is left to run out for this reason.
    GivenUp(Result<(), &'static str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Call {
    Read,
    /// Read it, and swap it to this candidate if it is still there to be taken.
    Acquire,
    /// Renew it, and lead on, or from then on.
    Renew,
    /// Say in the lease that the writes of a preempted term have ended.
    Acknowledge,
    Release,
}

/// A call, and the earliest moment for it; without a call, the moment to decide again.
type Due = (Option<Call>, Moment);

impl Candidacy {
    /// What to do at `inputs.now`. A wait is never over already.
    pub(in crate::election) fn next(&self, inputs: &Inputs) -> Next {
        let skew = self.timing.tolerated_skew();
        let inherited = self.inherited.map(|since| since.saturating_add(skew));
        let inputs = &Inputs {
            settles_at: inherited.map_or(inputs.settles_at, |at| at.max(inputs.settles_at)),
            ..*inputs
        };
        if let Task::GiveUp { failed } = inputs.task {
            return self.give_up(inputs, failed);
        }
        let (call, due) = self.due(inputs);
        match call {
            Some(call) if inputs.now >= due.max(self.contact.not_before) => Next::Call(call),
            Some(_) => Next::Wait(due.max(self.contact.not_before)),
            None => Next::Wait(due),
        }
    }

    fn due(&self, inputs: &Inputs) -> Due {
        let now = inputs.now;
        let at_once = |call| (Some(call), now);
        let doubt = self.contact.doubt();
        let owes = self.own.owes_an_acknowledgement();
        let idle = !inputs.leads && inputs.task != Task::Contend;
        if doubt == Doubt::IsOld && (owes || !idle) {
            return at_once(Call::Read);
        }
        let acknowledgement = (owes && inputs.settles_at < self.end(inputs))
            .then_some((Some(Call::Acknowledge), inputs.settles_at));
        if idle {
            return sooner(acknowledgement, self.idle(inputs));
        }
        let period = self.timing.retry_period();
        match self.decide(now, inputs.leads) {
            Decision::Renew => {
                let due = inputs.renewed.saturating_add(period.saturating_sub(self.contact.early));
                // A renewal tells as much as a read, and the deadline waits for it alone (rule S9).
                if now < due && doubt != Doubt::None { at_once(Call::Read) } else { (Some(Call::Renew), due) }
            }
            Decision::Hold(until) => {
                let renewal = (Some(Call::Renew), inputs.renewed.saturating_add(period));
                sooner(Some((None, until)), renewal)
            }
            Decision::Open => at_once(Call::Renew),
            Decision::Read => at_once(Call::Read),
            _ if doubt != Doubt::None => at_once(Call::Read),
            // Another program may undo each acquisition at once: that must not become a flood of them.
            Decision::Create | Decision::Take | Decision::Preempt => {
                (Some(Call::Acquire), self.claims.next_from(self.timing.pause()))
            }
            // Once the successor's time is over, there is something better to do than to spare it a wait.
            Decision::WaitUntil(until) => {
                let look = (Some(Call::Read), self.contact.next_look());
                sooner(acknowledgement, sooner(Some((None, until)), look))
            }
        }
    }

    /// What a candidate does that does not lead and is not to acquire anything: it gives back what it acquires all the same,
    /// by a claim that was under way.
    fn idle(&self, inputs: &Inputs) -> Due {
        let stays_away = inputs.task == Task::StayAway;
        let in_time = inputs.settles_at.max(inputs.now) < self.end(inputs);
        if self.is_mine() && (stays_away && in_time || self.own.is_unused()) && !self.waits(inputs.now) {
            let call = if self.contact.doubt() == Doubt::None { Call::Release } else { Call::Read };
            return (Some(call), inputs.settles_at);
        }
        if stays_away && self.may_become_mine() {
            return (Some(Call::Read), self.contact.next_look());
        }
        (None, inputs.now.saturating_add(self.timing.retry_period()))
    }

    /// Gives the lease up if it is this candidate's (rules S4 and S5).
    fn give_up(&self, inputs: &Inputs, failed: u32) -> Next {
        let Inputs { now, settles_at, .. } = *inputs;
        let doubt = self.contact.doubt();
        // Once: all that it spares is the successor's wait.
        let owes = (self.own.owes_an_acknowledgement() || self.own.is_draining())
            && settles_at < self.end(inputs)
            && failed == 0
            && doubt != Doubt::IsOld;
        if !owes && !self.is_mine() && !self.may_become_mine() {
            // Nothing to give up, whatever the API server has to say.
            return Next::GivenUp(Ok(()));
        }
        if now < settles_at {
            if self.is_mine() && self.end(inputs) <= settles_at {
                return Next::GivenUp(Err("a write that ended without an answer may still land"));
            }
            return Next::Wait(settles_at);
        }
        if owes {
            return Next::Call(Call::Acknowledge);
        }
        if failed >= ATTEMPTS {
            return Next::GivenUp(Err("the API server could not be told"));
        }
        if failed > 0 && now < self.contact.not_before {
            return Next::Wait(self.contact.not_before);
        }
        if doubt != Doubt::None {
            return Next::Call(Call::Read);
        }
        if !self.is_mine() {
            return Next::GivenUp(Err("an acquisition that was not answered may still land"));
        }
        if self.waits(now) {
            return Next::GivenUp(Err("its former holder may still be writing"));
        }
        Next::Call(Call::Release)
    }

    /// When the lease ends for the others at the earliest: they count from when they heard of its last renewal, or of a
    /// claim whose answer this candidate never got.
    fn end(&self, inputs: &Inputs) -> Moment {
        inputs.renewed.max(self.stood).saturating_add(self.timing.lease_duration())
    }
}

/// Whichever is due first; of two at one moment, the first.
fn sooner(one: Option<Due>, other: Due) -> Due {
    one.filter(|one| one.1 <= other.1).unwrap_or(other)
}
