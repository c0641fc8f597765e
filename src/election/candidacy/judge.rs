//! What the lease calls for.

use super::{
    claims::Hand,
    state::{Candidacy, Known},
};
use crate::{election::preemption::Overtaken, leadership::Moment, lease::LeaseRecord};

/// What the lease calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::election) enum Decision {
    /// Read the lease: nothing is known of it.
    Read,
    /// Swap it to this candidate: it has no holder, or the holder's time is over. Create it if there is none.
    Take,
    /// Swap it to this candidate, which precedes the live holder.
    Preempt,
    /// Renew it: this candidate holds it and leads.
    Renew,
    /// Renew it, and do not lead: a holder that was overtaken may still be writing, until this moment.
    Hold(Moment),
    /// Renew it, and lead from then on: the holder that was overtaken writes no more.
    Open,
    /// Another candidate holds it, until this moment unless it is renewed.
    WaitUntil(Moment),
}

impl Candidacy {
    /// What the lease calls for at `now`; `leading` says whether this process still has a valid grant.
    pub(in crate::election) fn decide(&self, now: Moment, leading: bool) -> Decision {
        let (record, until) = match &self.known {
            Known::Nothing => return Decision::Read,
            Known::Absent { until, .. } if now < *until => return Decision::WaitUntil(*until),
            Known::Absent { .. } => return Decision::Take,
            Known::Present { record, until, .. } => (record, *until),
        };
        match self.hand() {
            Hand::Current if leading => Decision::Renew,
            Hand::Current => match self.precedence.overtaken() {
                Some(overtaken) if now < overtaken.until => Decision::Hold(overtaken.until),
                Some(_) => Decision::Open,
                // A stretch that was interrupted is over, even if no other candidate took the lease: a new term begins.
                None => Decision::Take,
            },
            Hand::Other | Hand::Double if now < until => match self.preempts(record) {
                Some(from) if now >= from => Decision::Preempt,
                from => Decision::WaitUntil(from.map_or(until, |from| until.min(from))),
            },
            _ => Decision::Take,
        }
    }

    /// From when on this candidate may take the lease from its live holder.
    fn preempts(&self, record: &LeaseRecord) -> Option<Moment> {
        self.precedence.preempts(record).filter(|_| self.hand() == Hand::Other)
    }

    /// Whether this candidate precedes the holder, and spares it for a while: the two preempt each other in turn.
    pub(in crate::election) fn keeps_the_peace(&self, now: Moment) -> bool {
        self.record().and_then(|record| self.preempts(record)).is_some_and(|from| now < from)
    }

    /// The term that was overtaken, while its holder may still be writing: until then the lease must not be anybody's.
    pub(in crate::election) fn overtaken(&self, now: Moment) -> Option<Overtaken> {
        self.precedence.overtaken().filter(|overtaken| now < overtaken.until)
    }
}
