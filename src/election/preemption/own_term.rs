//! What a preempted candidate must tell the candidate that preempted it.

use super::handover::Handover;
use crate::{leadership::Term, lease::LeaseRecord};

/// This candidate's last term. It lasts from when the lease first held its claim until its successor knows that it no
/// longer writes.
///
/// ```text
/// None -> NeverOpened -> Open -> Preempted -> None
///              |           |        ^
///              `-----------+- Freed -'
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::election) enum OwnTerm {
    #[default]
    None,
    /// The lease has held its claim, but its gate has not opened. `anew`: the lease did not belong to this candidate
    /// before.
    NeverOpened { term: Term, anew: bool },
    /// Its gate has opened.
    Open(Term),
    /// It was preempted. The gate admits no new writes, and admitted writes finish until the deadline, as in a clean
    /// stop. Then its successor must be told.
    Preempted {
        term: Term,
        /// The successor may have been told.
        told: bool,
    },
    /// The lease has no holder since. The next one may ask for the end of this term's writes.
    Freed(Term),
}

impl OwnTerm {
    /// Whether this is the term `other`.
    pub(in crate::election) fn is_of(&self, other: &Term) -> bool {
        match self {
            Self::None => false,
            Self::NeverOpened { term, .. }
            | Self::Open(term)
            | Self::Preempted { term, .. }
            | Self::Freed(term) => term == other,
        }
    }

    pub(in crate::election) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Whether this term acquired the lease but never used it.
    pub(in crate::election) fn is_unused(&self) -> bool {
        matches!(self, Self::NeverOpened { anew: true, .. })
    }

    /// Whether the successor waits for the end of this term's writes. Some may still be under way.
    pub(in crate::election) fn owes_an_acknowledgement(&self) -> bool {
        matches!(self, Self::Preempted { .. })
    }

    /// Whether the successor waits, and cannot know yet that this term's writes have ended.
    pub(in crate::election) fn is_waited_for(&self) -> bool {
        matches!(self, Self::Preempted { told: false, .. })
    }

    /// Takes in that the successor is told.
    pub(in crate::election) fn tells(&mut self) {
        if let Self::Preempted { told, .. } = self {
            *told = true;
        }
    }

    /// Takes in that the lease holds a claim of this process. If a preemption was undone, for example by a backup,
    /// the term does not continue.
    pub(in crate::election) fn stands(&mut self, term: Term) {
        let goes_on = matches!(self, Self::NeverOpened { term: own, .. } | Self::Open(own) if *own == term);
        if !goes_on {
            let anew = matches!(self, Self::None | Self::Freed(_));
            *self = Self::NeverOpened { term, anew };
        }
    }

    /// Takes in a lease that holds no claim of this process.
    pub(in crate::election) fn meets(&mut self, record: &LeaseRecord) {
        let told = matches!(self, Self::Preempted { told: true, .. });
        *self = match std::mem::take(self) {
            Self::NeverOpened { term, .. }
            | Self::Open(term)
            | Self::Preempted { term, .. }
            | Self::Freed(term) => {
                match record.holder() {
                    _ if awaits(record, &term) => Self::Preempted { term, told },
                    None => Self::Freed(term),
                    // It was lost in another way, or its successor knows. Its count may be used again.
                    Some(_) => Self::None,
                }
            }
            Self::None => Self::None,
        };
    }

    /// Takes in that the lease held a claim of this process before it became `record`. The candidate learns late that
    /// it held the lease; a candidate that preempted it waits for its end. News of any other term changes nothing.
    pub(in crate::election) fn stood(&mut self, term: Term, record: &LeaseRecord) {
        if awaits(record, &term) {
            let told = self.is_of(&term) && matches!(self, Self::Preempted { told: true, .. });
            *self = Self::Preempted { term, told };
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

    #[test]
    fn a_preempted_unopened_term_owes_an_acknowledgement() {
        let mut own = OwnTerm::None;
        own.stands(term(4));
        own.meets(&taken("u", "from 4 to 5"));
        assert!(own.owes_an_acknowledgement());
    }

    #[test]
    fn an_open_term_closes_and_owes_its_end() {
        let mut own = OwnTerm::Open(term(4));
        own.meets(&taken("u", "from 4 to 5"));
        assert!(own.owes_an_acknowledgement() && !own.is_open());
        own.meets(&taken("u", "from 4 to 5"));
        assert!(own.owes_an_acknowledgement());
        own.meets(&taken("u", "from 4 to 5, done"));
        assert_eq!(own, OwnTerm::None);
    }

    /// After a backup, a count of transitions may be used again.
    #[test]
    fn a_later_term_cancels_the_acknowledgement() {
        let mut own = OwnTerm::Preempted { term: term(4), told: false };
        own.meets(&taken("u", "from 5 to 5"));
        own.meets(&taken("u", "from 4 to 5"));
        assert!(!own.owes_an_acknowledgement());
    }

    #[test]
    fn a_successor_of_another_term_is_owed_nothing() {
        for (uid, handover) in
            [("u", "from 3 to 5"), ("u", "from 4 to 4"), ("another", "from 4 to 5"), ("u", "")]
        {
            let mut own = OwnTerm::Open(term(4));
            own.meets(&taken(uid, handover));
            assert_eq!(own, OwnTerm::None, "{uid} {handover}");
        }
    }

    #[test]
    fn an_undone_preemption_does_not_reopen_the_term() {
        let mut own = OwnTerm::Preempted { term: term(4), told: false };
        own.stands(term(4));
        assert_eq!(own, OwnTerm::NeverOpened { term: term(4), anew: false });
        let mut own = OwnTerm::Open(term(4));
        own.stands(term(4));
        assert!(own.is_open(), "a renewal");
    }
}
