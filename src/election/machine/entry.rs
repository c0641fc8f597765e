//! When this candidate may take the lease.

use super::{
    claims::HeldBy,
    decide::Decision,
    state::{ALWAYS, Machine, ObservedLease},
};
use crate::{leadership::Moment, lease::LeaseRecord};
use std::time::Duration;

/// How long a candidate leaves its own lease alone after it has lost it, so that others see the loss. It does not wait by
/// chance then.
const AGAIN: Duration = Duration::from_millis(2);

impl Machine {
    /// How this candidate may take the lease, also its own one after its term has ended, and from when: [`Decision::Take`],
    /// [`Decision::Preempt`], or [`Decision::WaitUntil`] that moment.
    ///
    /// - **Permits**, of which the earliest counts: the lease is free, has run out, or is this candidate's own; or the
    ///   candidate precedes the live holder.
    /// - **Delays**, of which the latest counts: a former writer that could make its lease anew, a rest, the wait by chance,
    ///   and a bound on how often this candidate claims. [`Machine::preempts`] has the delay of mutual preemption.
    pub(super) fn entry(&self, now: Moment) -> (Decision, Moment) {
        let by_chance = self.entry.spread.wait();
        let (permit, others, record) = match &self.observed.known {
            ObservedLease::Nothing => return (Decision::Read, now),
            ObservedLease::Absent { until, was_mine, .. } => (*until, !was_mine, None),
            ObservedLease::Present { record, until, .. } => match self.held_by() {
                HeldBy::None | HeldBy::Other | HeldBy::Double => (*until, true, Some(record)),
                HeldBy::Inherited | HeldBy::Copy | HeldBy::Earlier | HeldBy::Current => {
                    (ALWAYS, false, Some(record))
                }
            },
        };
        let paced = self.claims.next_from(self.me.timing.pause());
        let preempts = record.and_then(|record| self.preempts(record)).filter(|_| now < permit);
        if let Some(from) = preempts {
            let from = from.max(self.entry.rests_until);
            let waits_until = permit.min(from);
            return if now < from {
                (Decision::WaitUntil(waits_until), waits_until)
            } else {
                (Decision::Preempt, paced)
            };
        }
        let blocked = self.blocked_until(record, now).unwrap_or(ALWAYS);
        let until = permit.max(blocked).max(self.entry.rests_until);
        if now < until {
            return (Decision::WaitUntil(until), until);
        }
        let from = if others { permit.saturating_add(by_chance) } else { ALWAYS };
        let from = from.max(self.claims.lost_at.saturating_add(AGAIN));
        (Decision::Take, from.max(paced))
    }

    /// Until when former writers keep this candidate from taking a lease that is free to take. Of most of them the claim
    /// speaks, so that a process which begins now learns of them; they only shut the gate.
    fn blocked_until(&self, record: Option<&LeaseRecord>, now: Moment) -> Option<Moment> {
        match record {
            // One whose lease was deleted may make it anew.
            None => self.formers.until(now),
            // It is the holder already. Its gate waits.
            Some(_) if self.held_by() == HeldBy::Earlier => None,
            // Old news do not show who holds the lease.
            Some(record) if record.version() < Some(self.observed.newest) => self.formers.until(now),
            Some(record) => self.formers.elsewhere_until(record.uid(), now),
        }
    }

    /// When this candidate may take the lease from its live holder. None if it may not.
    pub(super) fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        self.entry.precedence.preempts(record).filter(|_| self.held_by() == HeldBy::Other)
    }
}
