//! What a coordinator changes: it alone names the holder of a lease that no candidate holds, and it may prefer another
//! candidate to a live holder.

use super::{
    contact::Doubt,
    coordinated::Coordinated,
    decide::{Due, Inputs, Task, sooner},
    judge::Decision,
    state::{Candidacy, Known},
};
use crate::{election::hooks::LeaseCall, leadership::Moment, lease::LeaseRecord};

impl Candidacy {
    /// Leaves the choice of the holder to a coordinator.
    pub(in crate::election) fn coordinate(&mut self) {
        self.coordinated = Some(Coordinated::default());
    }

    /// Whether the holder was written by the coordinator: it names this candidate, and no candidate has acquired the
    /// lease since.
    pub(super) fn is_named_by_coordinator(&self, record: &LeaseRecord) -> bool {
        self.coordinated.is_some() && self.is_named_in(record) && record.acquire_time().is_none()
    }

    /// Whether this candidate holds the lease and should give it to another one.
    pub(in crate::election) fn gives_way(&self) -> bool {
        let other = |preferred: &str| preferred != self.identity.as_str();
        let named = self.record().filter(|record| self.is_named_in(record));
        let asked = named.and_then(LeaseRecord::preferred_holder).is_some_and(other);
        self.coordinated.as_ref().is_some_and(|own| own.gives_way || asked)
    }

    /// Records that this candidate ends its term for another one.
    pub(in crate::election) fn begin_to_give_way(&mut self) {
        if let Some(own) = &mut self.coordinated {
            own.gives_way = true;
        }
    }

    /// Records that the lease is no longer this candidate's.
    pub(super) fn has_given_way(&mut self) {
        if let Some(own) = &mut self.coordinated {
            own.gives_way = false;
        }
    }

    /// What a coordinated candidate does where one that contends by itself would do `alone`.
    pub(super) fn as_coordinated(&self, alone: Decision, now: Moment) -> Decision {
        let named_until = match &self.known {
            Known::Present { record, until, .. } if self.is_named_in(record) => Some(*until),
            _ => None,
        };
        match (alone, named_until) {
            _ if self.coordinated.is_none() => alone,
            (Decision::Take, None) => Decision::Await,
            // It waits for a former holder, whose writes no other candidate waits for.
            _ if self.is_mine() && self.formers.until(now).is_some() => alone,
            (Decision::Take | Decision::Renew | Decision::Open | Decision::Hold(_), Some(until))
                if self.gives_way() =>
            {
                if self.is_mine() {
                    Decision::GiveWay
                } else if now < until {
                    Decision::WaitUntil(until)
                } else {
                    // The coordinator does not clear a lease that ran out and names the candidate that it now chooses.
                    // So acquire it, to be able to release it.
                    alone
                }
            }
            _ => alone,
        }
    }

    /// Renews the lease until it can be released (rule S4). Under an order, another order releases it.
    pub(super) fn give_way(&self, inputs: &Inputs) -> Due {
        let now = inputs.now;
        let renewal = (Some(LeaseCall::Renew), self.next_renewal());
        if inputs.leads && (inputs.task != Task::Contend || renewal.1 <= now) {
            return renewal;
        }
        if self.contact.doubt != Doubt::None {
            return (Some(LeaseCall::Read), now);
        }
        let release = (Some(LeaseCall::Release), inputs.settles_at);
        if inputs.leads { sooner(release, renewal) } else { release }
    }
}
