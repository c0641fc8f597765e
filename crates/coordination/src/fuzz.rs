//! What must hold for any `LeaseCandidate` that comes from outside. It is no part of the public interface.

use crate::{
    record::{CandidateRecord, CandidateSpec},
    register::{Next, Register},
    settings::Versions,
    watch::read,
};
use jiff::Timestamp;
use kube_client::core::WatchEvent;
use kube_leader_gate::{Identity, leadership::Moment, lease::LeaseName};
use serde_json::Value;

/// Inputs that reach far.
pub const SEEDS: &[&str] = &[
    r#"{"metadata":{"namespace":"default","name":"me","uid":"u","resourceVersion":"3"}}"#,
    r#"{"apiVersion":"coordination.k8s.io/v1beta1","kind":"LeaseCandidate","metadata":{"namespace":"default","name":"me","uid":"u","resourceVersion":"4711","labels":{"a":"b"}},"spec":{"leaseName":"operator","binaryVersion":"1.5.0","emulationVersion":"1.4.0","strategy":"OldestEmulationVersion","pingTime":"2026-01-02T03:04:05.000006Z","renewTime":"2026-01-02T03:04:04.000006Z","more":[1,2]}}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"x"},"spec":[1]}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"1"},"spec":{"leaseName":"other","pingTime":"9999-12-30T22:00:00.999999999Z","renewTime":7}}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"1"},"spec":{"leaseName":"other","pingTime":"9999-12-30T22:00:00Z","renewTime":7}}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"1"},"spec":{"pingTime":"-009999-01-02T01:59:59Z"}}"#,
    r#"{"type":"ADDED","object":{"metadata":{"namespace":"default","name":"me","uid":"u","resourceVersion":"3"},"spec":{"leaseName":"operator","pingTime":"2026-01-02T03:04:05.000000Z"}}}"#,
];

/// Pieces of inputs that random changes hardly ever make.
pub const WORDS: &[&str] = &[
    "\"type\":\"ADDED\",",
    "\"object\":",
    "\"metadata\":",
    "\"name\":",
    "\"uid\":",
    "\"resourceVersion\":",
    "\"spec\":",
    "\"leaseName\":",
    "\"pingTime\":",
    "\"renewTime\":",
    "\"binaryVersion\":",
    "\"emulationVersion\":",
    "\"strategy\":",
    "\"operator\"",
    "\"me\"",
    "\"2026-01-02T03:04:05.000006Z\"",
    "\"9999-12-30T22:00:00.999999999Z\"",
    "\"-009999-01-02T01:59:59Z\"",
    "\"2026-01-02T03:04:05.0000009Z\"",
    "\"2016-12-31T23:59:60Z\"",
    "+02:00",
    "null",
    "0",
    "\"\"",
    "{",
    "}",
    "[",
    "]",
    ",",
];

fn card() -> CandidateSpec {
    CandidateSpec {
        identity: Identity::new("me").expect("an identity"),
        lease: LeaseName::new("default", "operator").expect("a name"),
        versions: Versions::new("1.5.0").expect("a version"),
    }
}

/// An event of a watch, and the body of an answer.
///
/// # Panics
/// If something does not hold.
pub fn body(bytes: &[u8]) {
    if let Ok(event) = serde_json::from_slice::<WatchEvent<Value>>(bytes)
        && let Ok(Some((name, _))) = read(event)
    {
        let event: Value = serde_json::from_slice(bytes).expect("it was read");
        assert_eq!(event["object"]["metadata"]["name"].as_str().unwrap_or_default(), name);
    }
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
fn decides(card: CandidateSpec, seen: CandidateRecord) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*, sample::Index};

    /// Puts a word in place of so many bytes.
    fn edited(seed: Index, edits: Vec<(Index, usize, Index)>) -> Vec<u8> {
        let mut bytes = seed.get(SEEDS).as_bytes().to_vec();
        for (at, length, word) in edits {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..(at + length).min(bytes.len()), word.get(WORDS).bytes());
        }
        bytes
    }

    #[test]
    fn any_lease_candidate_is_answered() {
        for seed in SEEDS {
            body(seed.as_bytes());
        }
        let edits = vec((any::<Index>(), 0..12_usize, any::<Index>()), 0..7);
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) };
        proptest!(config, |(seed in any::<Index>(), edits in edits)| body(&edited(seed, edits)));
    }
}
