//! What a preempted candidate must tell the candidate that preempted it.

use super::handover::Handover;
use crate::{
    leadership::{Moment, Term},
    lease::LeaseRecord,
};

/// This candidate's last term. It lasts from when the lease first held its claim until its successor knows that it no
/// longer writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::election) struct OwnTerm {
    /// None in [`Phase::None`] alone.
    term: Option<Term>,
    phase: Phase,
}

/// ```text
/// None -> Shut -> Open -> Preempted -> None
///          |       |       ^
///          `-------+- Freed'
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    None,
    /// The lease holds its claim, but its gate has not opened.
    Shut,
    /// Its gate has opened.
    Open,
    /// It ends in good order, for another candidate, perhaps before its gate has opened. Writes that have not finished by
    /// then are cut off.
    Yielding(Moment),
    /// It was preempted. The gate admits no new writes, and admitted writes finish until the deadline, as in a clean
    /// stop. Then its successor must be told.
    Preempted,
    /// The lease has had no holder since, and the next one may ask for the end of this term's writes. Or it was preempted,
    /// and the lease holds its claim again, for example by a backup. It does not continue.
    Freed,
}

impl OwnTerm {
    /// Whether this is the term `other`.
    pub(in crate::election) fn is_of(&self, other: &Term) -> bool {
        self.term.as_ref() == Some(other)
    }

    /// Whether its gate has opened, and it goes on.
    pub(in crate::election) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Yielding(_))
    }

    /// Until when its writes may finish, if it ends in good order for another candidate.
    pub(in crate::election) fn yields_until(&self) -> Option<Moment> {
        if let Phase::Yielding(until) = self.phase { Some(until) } else { None }
    }

    /// Whether the lease holds its claim, and its gate has not opened.
    pub(in crate::election) fn is_shut(&self) -> bool {
        self.phase == Phase::Shut
    }

    /// Whether the successor waits for the end of this term's writes. Some may still be under way.
    pub(in crate::election) fn owes_an_acknowledgement(&self) -> bool {
        self.phase == Phase::Preempted
    }

    /// Takes in that the gate has opened for `term`.
    pub(in crate::election) fn opens(&mut self, term: Term) {
        *self = Self { term: Some(term), phase: Phase::Open };
    }

    /// Ends it for another candidate. Its writes may finish until then.
    pub(in crate::election) fn yields(&mut self, until: Moment) {
        if matches!(self.phase, Phase::Shut | Phase::Open) {
            self.phase = Phase::Yielding(until);
        }
    }

    /// Takes in that the lease holds a claim of this process.
    pub(in crate::election) fn stands(&mut self, term: Term) {
        self.phase = match self.phase {
            _ if !self.is_of(&term) => Phase::Shut,
            Phase::Preempted => Phase::Freed,
            phase => phase,
        };
        self.term = Some(term);
    }

    /// Takes in a lease that holds no claim of this process.
    pub(in crate::election) fn meets(&mut self, record: &LeaseRecord) {
        let Some(term) = &self.term else { return };
        if awaits(record, term) {
            self.phase = Phase::Preempted;
        } else if record.holder().is_none() {
            self.phase = Phase::Freed;
        } else {
            // It was lost in another way, or its successor knows. Its count may be used again.
            *self = Self::default();
        }
    }

    /// Takes in that the lease held a claim of this process before it became `record`. The candidate learns late that
    /// it held the lease; a candidate that preempted it waits for its end. News of any other term changes nothing.
    pub(in crate::election) fn stood(&mut self, term: Term, record: &LeaseRecord) {
        if awaits(record, &term) {
            *self = Self { term: Some(term), phase: Phase::Preempted };
        }
    }
}

/// Whether the holder took the lease from the live `term`, and waits for the end of its writes.
fn awaits(record: &LeaseRecord, term: &Term) -> bool {
    record.uid() == term.lease_uid()
        && Handover::under_way(record).is_some_and(|it| it.from == term.transitions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::preemption::handover::HANDOVER;
    use serde_json::json;

    fn term(transitions: u64) -> Term {
        Term::new("u", transitions)
    }

    fn taken(uid: &str, handover: &str) -> LeaseRecord {
        let metadata = json!({ "uid": uid, "resourceVersion": "7", "annotations": { HANDOVER: handover } });
        let spec = json!({ "holderIdentity": "other", "leaseTransitions": 5 });
        LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    fn open() -> OwnTerm {
        let mut own = OwnTerm::default();
        own.opens(term(4));
        own
    }

    fn preempted() -> OwnTerm {
        let mut own = open();
        own.meets(&taken("u", "from 4 to 5"));
        own
    }

    #[test]
    fn a_preempted_unopened_term_owes_an_acknowledgement() {
        let mut own = OwnTerm::default();
        own.stands(term(4));
        own.meets(&taken("u", "from 4 to 5"));
        assert!(own.owes_an_acknowledgement());
    }

    #[test]
    fn an_open_term_closes_and_owes_its_end() {
        let mut own = open();
        own.meets(&taken("u", "from 4 to 5"));
        assert!(own.owes_an_acknowledgement() && !own.is_open());
        own.meets(&taken("u", "from 4 to 5"));
        assert!(own.owes_an_acknowledgement());
        own.meets(&taken("u", "from 4 to 5, done"));
        assert_eq!(own, OwnTerm::default());
    }

    /// After a backup, a count of transitions may be used again.
    #[test]
    fn a_later_term_cancels_the_acknowledgement() {
        let mut own = preempted();
        own.meets(&taken("u", "from 5 to 5"));
        own.meets(&taken("u", "from 4 to 5"));
        assert!(!own.owes_an_acknowledgement());
    }

    #[test]
    fn a_successor_of_another_term_is_owed_nothing() {
        for (uid, handover) in
            [("u", "from 3 to 5"), ("u", "from 4 to 4"), ("another", "from 4 to 5"), ("u", "")]
        {
            let mut own = open();
            own.meets(&taken(uid, handover));
            assert_eq!(own, OwnTerm::default(), "{uid} {handover}");
        }
    }

    #[test]
    fn an_undone_preemption_does_not_reopen_the_term() {
        let mut own = preempted();
        own.stands(term(4));
        assert!(own.is_of(&term(4)) && !own.is_open() && !own.is_shut() && !own.owes_an_acknowledgement());
        let mut own = open();
        own.stands(term(4));
        assert!(own.is_open(), "a renewal");
    }
}
