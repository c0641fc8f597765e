//! A lease that was taken from a live holder, and what the lease says about that holder's last writes.

use crate::lease::{LeaseRecord, LeaseUpdate};
use std::{collections::BTreeMap, fmt};

/// The annotation which says that one term preempted another, and later that the preempted term's writes have ended.
pub const HANDOVER: &str = "kube-leader-gate/handover";

/// A change from one live term to the next. Counts of transitions name the terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    pub from: u64,
    pub to: u64,
    /// Whether the former holder has said that its last write has ended.
    pub done: bool,
}

// === impl Handover ===

impl Handover {
    /// The handover that gave the lease to the present holder. Earlier handovers do not count.
    pub fn of(record: &LeaseRecord) -> Option<Self> {
        record.holder()?;
        Self::written_in(record).filter(|handover| handover.to == record.transitions())
    }

    /// The last handover of the lease, also if another elector has taken the lease since. That one leaves it as it was.
    pub(in crate::election) fn written_in(record: &LeaseRecord) -> Option<Self> {
        Self::parse(record.annotation(HANDOVER)?.as_str()?)
    }

    /// That handover, if the former holder has not said yet that its last write has ended.
    pub fn under_way(record: &LeaseRecord) -> Option<Self> {
        Self::of(record).filter(|handover| !handover.done)
    }

    /// A claim that changes nothing but the handover, which becomes done.
    pub fn acknowledgement(record: &LeaseRecord) -> Option<LeaseUpdate> {
        let done = Self { done: true, ..Self::of(record)? };
        record.annotated(BTreeMap::from([(HANDOVER, Some(done.to_string()))]))
    }

    fn parse(text: &str) -> Option<Self> {
        let (terms, done) = match text.strip_suffix(", done") {
            Some(terms) => (terms, true),
            None => (text, false),
        };
        let (from, to) = terms.strip_prefix("from ")?.split_once(" to ")?;
        Some(Self { from: from.parse().ok()?, to: to.parse().ok()?, done })
    }
}

impl fmt::Display for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} to {}{}", self.from, self.to, if self.done { ", done" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn record(transitions: u64, handover: &Value) -> LeaseRecord {
        let metadata = json!({ "uid": "u", "resourceVersion": "1",
                               "annotations": { HANDOVER: handover, "team": "a" } });
        let spec = json!({ "holderIdentity": "b", "leaseTransitions": transitions, "acquireTime": "then",
                           "renewTime": "now", "leaseDurationSeconds": 15 });
        LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    #[test]
    fn a_handover_is_read_as_written() {
        for done in [false, true] {
            let handover = Handover { from: 3, to: 4, done };
            assert_eq!(Handover::of(&record(4, &json!(handover.to_string()))), Some(handover));
        }
        assert_eq!(Handover { from: 3, to: 4, done: true }.to_string(), "from 3 to 4, done");
    }

    #[test]
    fn nonsense_and_other_terms_give_no_handover() {
        assert_eq!(Handover::of(&record(5, &json!("from 3 to 4"))), None);
        let huge = "from 3 to ".repeat(1_000_000);
        for odd in
            [json!(""), json!(7), json!(null), json!("from 3 to 4, do"), json!("from -1 to 4"), json!(huge)]
        {
            assert_eq!(Handover::of(&record(4, &odd)), None);
        }
        assert_eq!(Handover::acknowledgement(&record(4, &json!("3"))), None);
    }

    #[test]
    fn an_acknowledgement_changes_nothing_else() {
        let before = record(4, &json!("from 3 to 4"));
        let after = before.with(&Handover::acknowledgement(&before).unwrap());
        assert!(after.says_the_same(&before) && Handover::of(&after).unwrap().done);
        assert_eq!(after.into_json()["metadata"]["annotations"]["team"], "a");
    }
}
