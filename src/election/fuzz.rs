//! Bodies of `crate::fuzz` that need the inner parts of the election.

use crate::{
    election::{
        crowd::{Crowd, STANDBYS, Standbys, longest_wait_at_the_start},
        early::fuzz::check_pod,
        preemption::{HANDOVER, HOLDER_KEY, Handover, Precedence, Priority, holder_key, is_key},
    },
    leadership::Moment,
    lease::{Identity, LeaseRecord, LeaseTiming},
};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) use crate::election::coordination::fuzz::{candidate_body, reads_a_candidate};

/// Lines: the handover, the holder's key, the standbys, the holder's pod.
pub(crate) fn marks_body(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (handover, key, standbys, pod) = (line(), line(), line(), line());
    // The third and the fourth term: in one of them a handover may have happened.
    for transitions in [3, 4] {
        let record = record(transitions, handover, key, standbys, pod);
        check_handover(&record, handover);
        check_key(&record, key);
        check_standbys(&record, standbys);
        check_pod(&record, pod);
    }
}

fn record(transitions: u64, handover: &str, key: &str, standbys: &str, pod: &str) -> LeaseRecord {
    let annotations = json!({ HANDOVER: handover, HOLDER_KEY: key, STANDBYS: standbys, "kube-leader-gate/holder-pod": pod });
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
    let again = self::record(handover.to, &handover.to_string(), "", "", "");
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

fn check_standbys(record: &LeaseRecord, text: &str) {
    let list = Standbys::of(record);
    assert!(list.len() <= 3 && list.is_full() == (list.len() == 3), "{text}");
    let me = Identity::new("me").expect("an identity");
    assert!(list.place("holder").is_none(), "{text}");
    let reread =
        |list: &Standbys| list.annotation().map(|text| Standbys::of(&self::record(3, "", "", &text, "")));
    assert_eq!(reread(&list).unwrap_or_default(), list, "{text}");
    for own in [None, Priority::ranked("mid", ["high", "mid", "low", ""]).ok()] {
        let precedence = Precedence::new(own, Duration::from_secs(15));
        let (ahead, stands) = list.before("me", &precedence);
        assert!(ahead <= list.len() && stands == list.place("me").is_some(), "{text}");
        if let Some(joined) = list.with(&me, &precedence) {
            assert!(!stands && joined.place("me").is_some() && joined.len() <= 3, "{text}");
            assert_eq!(reread(&joined), Some(joined.clone()), "{text}");
            assert!(joined.without("me").len() <= list.len(), "{text}");
        }
        // The list is only a hint: no list makes a candidate wait long.
        let timing = LeaseTiming::fast();
        let mut crowd = Crowd::new(timing);
        crowd.answered(Duration::from_secs(3600));
        crowd.observe(record, &me, &precedence, Moment::from_nanos(1));
        let longest = longest_wait_at_the_start(timing.pause());
        assert!(crowd.wait(&me, &precedence) <= longest, "{text}");
        assert!(crowd.remaining(&me, Duration::from_secs(1)).place("me").is_none(), "{text}");
    }
    let _: Option<Value> = list.annotation().map(|text| serde_json::from_str(&text).expect("JSON"));
}
