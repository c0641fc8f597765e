//! What the lease calls for, and which call is next. It depends only on what the candidate knows, on its orders, and on the
//! time.

use super::{
    api_health::Staleness,
    state::{Machine, Next, ObservedLease, Order, View},
};
use crate::{
    election::{hooks::LeaseCall, preemption::Handover},
    leadership::Moment,
};

/// What to do about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Decision {
    /// Read the lease: nothing is known about it.
    Read,
    /// Take it: it has no holder, or the holder's time is over, or it is the own one and the term has ended. Create it if
    /// there is none.
    Take,
    /// Take it from the live holder, which this candidate precedes.
    Preempt,
    /// Renew it: this candidate holds it and leads.
    Renew,
    /// Renew it but do not lead: until this moment a former writer may begin a write.
    Hold(Moment),
    /// Renew it and lead: no former writer may write any more.
    Open,
    /// Another candidate holds it until this moment, unless that candidate renews it.
    WaitUntil(Moment),
}

/// A call and the earliest moment for it. If there is no call, the moment to decide again.
pub(super) type Due = (Option<LeaseCall>, Moment);

impl Machine {
    /// Decides what to do about the lease at `now`. `leading` says whether this process still has a valid grant.
    pub(in crate::election) fn decide(&self, now: Moment, leading: bool) -> Decision {
        match (&self.observed.known, self.formers.until(now)) {
            (ObservedLease::Present { .. }, former) if self.is_current() => match former {
                _ if leading => Decision::Renew,
                Some(until) => Decision::Hold(until),
                None if self.own.is_shut() => Decision::Open,
                // An interrupted term is over, even if no other candidate took the lease. A new term begins.
                None => self.entry(now).0,
            },
            _ => self.entry(now).0,
        }
    }

    /// Says what is next at `view.now`, if no call is under way. A wait always ends after that.
    pub(super) fn next(&self, view: &View) -> Next {
        let owes = self.own.owes_an_acknowledgement();
        let settles_at = self.formers.settle_at(view.settles_at, owes, view.now);
        let view = &View { settles_at, ..view.clone() };
        let order =
            if self.order == Order::Contend && !self.contends(view) { Order::Hold } else { self.order };
        let not_before = self.health.not_before;
        let (call, due) = match order {
            Order::GiveUp { failed } => match self.give_back(view, failed) {
                Ok(due) => due,
                Err(outcome) => return Next::GivenUp(outcome),
            },
            Order::Hold | Order::StayAway if view.term.is_none() => self.idle(view, order),
            Order::Contend | Order::Hold | Order::StayAway => self.contend(view, order),
        };
        match call {
            Some(call) if view.now >= due.max(not_before) => Next::Call(call),
            Some(_) => Next::Wait(due.max(not_before)),
            None => Next::Wait(due),
        }
    }

    fn contend(&self, view: &View, order: Order) -> Due {
        let now = view.now;
        let at_once = |call| (Some(call), now);
        let stale = self.health.staleness;
        if stale >= Staleness::IsOld {
            return at_once(LeaseCall::Read);
        }
        let leads = view.term.is_some();
        if self.gives_way(view, order) {
            return self.give_back(view, 0).unwrap_or((None, self.end()));
        }
        match self.decide(now, leads) {
            Decision::Renew => {
                let due = self.next_renewal();
                // A renewal shows as much as a read, and the deadline depends on the renewal only (rule S9).
                let reads = stale != Staleness::None && now < due;
                if reads { at_once(LeaseCall::Read) } else { (Some(LeaseCall::Renew), due) }
            }
            Decision::Hold(until) => {
                let period = self.me.timing.retry_period();
                let due =
                    if self.must_name_others(now) { now } else { self.claims.renewed.saturating_add(period) };
                sooner((None, until), (Some(LeaseCall::Renew), due))
            }
            Decision::Open => at_once(LeaseCall::Renew),
            Decision::Read => at_once(LeaseCall::Read),
            _ if stale != Staleness::None => at_once(LeaseCall::Read),
            // Admitted writes of the preempted term still finish.
            Decision::Take | Decision::Preempt if leads => (None, now.saturating_add(self.me.timing.pause())),
            // One call: it swaps the version that the watch has shown, so it fails if that is old.
            Decision::Take | Decision::Preempt => (Some(LeaseCall::Acquire), self.entry(now).1),
            // Once the successor's time is over, there are better things to do than to shorten its wait.
            Decision::WaitUntil(until) => {
                let wait = sooner((None, until), (Some(LeaseCall::Read), self.health.next_look));
                let acknowledgement = (Some(LeaseCall::Acknowledge), view.settles_at);
                if self.owes_in_time(view) { sooner(acknowledgement, wait) } else { wait }
            }
        }
    }

    /// Whether the lease has to name former writers at once: an acknowledgement does not speak of the others.
    pub(super) fn must_name_others(&self, now: Moment) -> bool {
        let said = self.record().and_then(Handover::of).is_some_and(|handover| handover.done);
        said && self.formers.until(now).is_some()
    }

    /// When a leader renews next.
    pub(super) fn next_renewal(&self) -> Moment {
        let period = self.me.timing.retry_period().saturating_sub(self.health.early);
        self.claims.renewed.saturating_add(period)
    }
}

/// The earlier of the two; the first if they are equal.
pub(super) fn sooner(one: Due, other: Due) -> Due {
    if one.1 <= other.1 { one } else { other }
}
