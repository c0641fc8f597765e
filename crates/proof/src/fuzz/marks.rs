//! What candidates write into the lease for one another.

use kube_leader_gate::{
    election::Priority,
    internal::{HANDOVER, HOLDER_KEY, Handover, InsideOfRecord, Precedence, holder_key, is_key},
    lease::LeaseRecord,
};
use serde_json::json;
use std::time::Duration;

/// Lines: the handover, the holder's key.
pub(super) const SEEDS: &[&str] = &[
    "from 3 to 4\nstable",
    "from 3 to 4, done\n",
    "from 18446744073709551615 to 4\nhigh",
    "from +3 to 04\nme",
];

pub(super) const WORDS: &[&str] = &[
    "\n",
    "from ",
    " to ",
    ", done",
    "0",
    "3",
    "4",
    "+",
    "-1",
    "18446744073709551615",
    "low",
    "mid",
    "high",
    "me",
    "holder",
    "\\u0000",
    "\\\"",
    " ",
    "\u{a0}",
    "é",
];

/// Lines: the handover, the holder's key.
pub(super) fn body(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (handover, key) = (line(), line());
    // The third and the fourth term: in one of them a handover may have happened.
    for transitions in [3, 4] {
        let record = record(transitions, handover, key);
        check_handover(&record, handover);
        check_key(&record, key);
    }
}

fn record(transitions: u64, handover: &str, key: &str) -> LeaseRecord {
    let annotations = json!({ HANDOVER: handover, HOLDER_KEY: key });
    let metadata = json!({ "uid": "u", "resourceVersion": "1", "annotations": annotations });
    let spec = json!({ "holderIdentity": "holder", "leaseTransitions": transitions, "acquireTime": "then",
                       "renewTime": "now", "leaseDurationSeconds": 15 });
    LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).expect("a lease")
}

fn check_handover(record: &LeaseRecord, text: &str) {
    let Some(handover) = Handover::of(record) else {
        assert!(Handover::under_way(record).is_none() && Handover::acknowledgement(record).is_none());
        return;
    };
    assert_eq!(handover.to, record.transitions(), "{text}");
    assert_eq!(handover.done, text.ends_with(", done"), "{text}");
    assert_eq!(Handover::under_way(record), (!handover.done).then_some(handover));
    let again = self::record(handover.to, &handover.to_string(), "");
    assert_eq!(Handover::of(&again), Some(handover), "{text}");
    let after = record.with(&Handover::acknowledgement(record).expect("the lease makes sense"));
    assert!(after.says_the_same(record), "{text}");
    assert_eq!(Handover::of(&after), Some(Handover { done: true, ..handover }), "{text}");
}

fn check_key(record: &LeaseRecord, text: &str) {
    let key = holder_key(record);
    assert_eq!(key, Some(text).filter(|text| text.is_empty() || is_key(text)));
    let candidate_with =
        |own: &str| Precedence::new(Priority::new(own, |_| true).ok(), Duration::from_secs(15));
    let preempts = candidate_with("me").preempts(record).is_some();
    let expected = key.is_some_and(|key| key != "me") && Handover::under_way(record).is_none();
    assert_eq!(preempts, expected, "{text:?}");
    assert!(candidate_with("").preempts(record).is_none(), "without a priority");
    assert_eq!(candidate_with("me").oddity(record).is_some(), key.is_none());
    if is_key(text) {
        assert!(candidate_with(text).preempts(record).is_none(), "{text:?} precedes itself");
    }
}
