//! What the lease calls for.

use super::{
    claims::Hand,
    state::{Candidacy, Known},
};
use crate::{election::preemption::Handover, leadership::Moment, lease::LeaseRecord};

/// What to do about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Decision {
    /// Read the lease: nothing is known about it.
    Read,
    /// Take it: it has no holder, or the holder's time is over. Create it if there is none.
    Take,
    /// Take it from the holder, whose process has ended.
    Succeed,
    /// Take it from the live holder, which this candidate precedes.
    Preempt,
    /// Renew it: this candidate holds it and leads.
    Renew,
    /// Renew it but do not lead: until this moment an overtaken holder may still be writing, or the gate may not open.
    Hold(Moment),
    /// Renew it and lead: the overtaken holder no longer writes, and the gate may open.
    Open,
    /// Release it: the gate was not allowed to open in time, and another candidate may be luckier.
    GiveBack,
    /// Another candidate holds it until this moment, unless that candidate renews it.
    WaitUntil(Moment),
    /// Wait for the coordinator: no candidate holds the lease, and only the coordinator may name one.
    Await,
    /// Release it once no admitted write can take effect: the coordinator prefers another candidate.
    GiveWay,
}

impl Candidacy {
    /// Decides what to do about the lease at `now`. `leading` says whether this process still has a valid grant.
    pub(in crate::election) fn decide(&self, now: Moment, leading: bool) -> Decision {
        let coordinated = self.as_coordinated(self.decide_alone(now, leading), now);
        match (coordinated, self.opening.rests_until(now)) {
            (Decision::Take | Decision::Succeed | Decision::Preempt, Some(until)) => {
                Decision::WaitUntil(until)
            }
            (decision, _) => decision,
        }
    }

    /// Decides for a candidate that contends by itself, whether or not it rests.
    fn decide_alone(&self, now: Moment, leading: bool) -> Decision {
        let former = self.formers.until(now);
        let (record, until) = match &self.known {
            Known::Nothing => return Decision::Read,
            Known::Absent { until, .. } => {
                let until = former.max(Some(*until).filter(|until| now < *until));
                return until.map_or(Decision::Take, Decision::WaitUntil);
            }
            Known::Present { record, until, .. } => (record, *until),
        };
        match (self.hand(), former) {
            (Hand::Current, _) if leading => Decision::Renew,
            (Hand::Current, Some(until)) => Decision::Hold(until),
            (Hand::Current, None) => match self.opening.awaited() {
                Some(until) if now < until => Decision::Hold(until),
                Some(_) => Decision::GiveBack,
                None if self.formers.hold_back || self.opening.is_agreed() => Decision::Open,
                // An interrupted term is over, even if no other candidate took the lease. A new term begins.
                None => Decision::Take,
            },
            (Hand::Other, _) if now < until && self.succeeds(record) => Decision::Succeed,
            (Hand::Other | Hand::Double, _) if now < until => match self.preempts(record) {
                Some(from) if now >= from => Decision::Preempt,
                from => Decision::WaitUntil(from.map_or(until, |from| until.min(from))),
            },
            // It is the holder already, or is named by the coordinator. Its gate waits.
            (Hand::Earlier | Hand::Coordinator, _) => Decision::Take,
            // A former writer whose lease was deleted may make it anew. Of another one the claim has to speak, so that a
            // process which begins now learns of it.
            _ => {
                let is_old = record.version() < Some(self.newest);
                let gone = self.formers.elsewhere_until(record.uid(), now);
                let until = if is_old { former } else { gone };
                until.map_or(Decision::Take, Decision::WaitUntil)
            }
        }
    }

    /// Whether this candidate may take the lease from a holder whose process has ended. Not while that holder waited for
    /// one before it, which may still be writing.
    fn succeeds(&self, record: &LeaseRecord) -> bool {
        self.early.has_ended(record) && Handover::under_way(record).is_none()
    }

    /// When this candidate may take the lease from its live holder. None if it may not.
    fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        self.precedence.preempts(record).filter(|_| self.hand() == Hand::Other)
    }

    /// Whether this candidate precedes the holder, but waits for now because the two preempt each other in turn.
    pub(in crate::election) fn backs_off(&self, now: Moment) -> bool {
        self.record().and_then(|record| self.preempts(record)).is_some_and(|from| now < from)
    }

    /// Whether the gate stays shut at `now`, although the lease holds this candidate's claim.
    pub(in crate::election) fn is_held_back(&self, now: Moment) -> bool {
        self.formers.until(now).is_some() || self.opening.awaited().is_some()
    }

    /// For whom this candidate waits, if that takes longer than its own lease lasts, in words for the log.
    pub(in crate::election) fn long_wait(&self, now: Moment) -> Option<String> {
        let rest = self.formers.until(now)?.saturating_since(now);
        let name = self.formers.last_to_end().filter(|_| rest > self.timing.lease_duration())?;
        // A lease that names this candidate says to its next process too that it waits.
        let first = if self.is_mine() { "delete the lease and " } else { "" };
        Some(format!(
            "{name} held this lease for a longer time than this candidate does, and may write for {} s; if its process \
             has ended, {first}restart the replicas",
            rest.as_secs()
        ))
    }

    /// Whether this candidate holds the lease and waits until its gate may open.
    pub(in crate::election) fn awaits_opening(&self) -> bool {
        self.is_current() && self.opening.awaited().is_some()
    }
}
