//! Bodies of `crate::fuzz` for the `LeaseCandidate`.

use super::{
    record::{CandidateRecord, Card},
    register::{Next, Register},
    settings::Coordination,
    watch::read,
};
use crate::{
    leadership::Moment,
    lease::{Identity, LeaseName},
};
use jiff::Timestamp;
use serde_json::Value;

fn card() -> Card {
    Card {
        identity: Identity::new("me").expect("an identity"),
        lease: LeaseName::new("default", "operator").expect("a name"),
        coordination: Coordination::new("1.5.0").expect("a version"),
    }
}

/// A line of a watch.
pub(crate) fn reads_a_candidate(line: &[u8]) {
    if let Ok(Some((name, _))) = read(line) {
        let event: Value = serde_json::from_slice(line).expect("it was read");
        assert_eq!(event["object"]["metadata"]["name"].as_str().unwrap_or_default(), name);
    }
}

/// The body of an answer.
pub(crate) fn candidate_body(bytes: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(bytes) else { return };
    let Some(seen) = CandidateRecord::from_json(json.clone()) else { return };
    assert!(!seen.uid().is_empty() && !seen.is_older_than(&seen));
    let card = card();
    for now in [Timestamp::UNIX_EPOCH, Timestamp::constant(1_800_000_000, 999_999_999)] {
        let renewed = card.renewed(&seen, now);
        let after = CandidateRecord::from_json(renewed.clone()).expect("it has kept its name");
        assert!(card.agrees_with(&after), "{renewed}");
        assert_eq!(after.unanswered_ping(), None, "{renewed}");
        assert_eq!(card.other_lease(&after), card.other_lease(&seen), "{renewed}");
        assert_eq!(foreign(renewed), foreign(json.clone()));
    }
    decides(card, seen);
}

/// Whatever stands there, the register makes one call at a time, and a wait ends.
fn decides(card: Card, seen: CandidateRecord) {
    let mut register = Register::new(card);
    let now = Moment::from_nanos(60_000_000_000);
    let other = register.card.other_lease(&seen).is_some();
    register.read(Some(seen), true, now);
    for stands in [true, false] {
        match register.next(stands, now, Timestamp::UNIX_EPOCH) {
            Next::Wait(until) => assert!(until > now),
            Next::Update(_) => assert!(stands && !other),
            Next::Delete(_) => assert!(!stands && !other),
            next => panic!("it knows the object: {next:?}"),
        }
    }
}

/// The fields that this candidate does not own.
fn foreign(mut json: Value) -> Value {
    let Some(object) = json.as_object_mut() else { return json };
    let hollow = match object.get_mut("spec").and_then(Value::as_object_mut) {
        Some(spec) => {
            for owned in ["binaryVersion", "emulationVersion", "strategy", "renewTime"] {
                spec.remove(owned);
            }
            spec.is_empty()
        }
        // It is replaced.
        None => true,
    };
    if hollow {
        object.remove("spec");
    }
    json
}
