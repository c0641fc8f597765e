//! What an answer must have to be a lease, and what is said of a lease that makes no sense.

use super::*;

fn held(spec: &Value) -> LeaseRecord {
    let mut spec = spec.clone();
    spec["holderIdentity"] = json!("other");
    LeaseRecord::from_json(json!({ "metadata": { "uid": "u", "resourceVersion": "1" }, "spec": spec }))
        .unwrap()
}

#[test]
fn an_answer_without_uid_or_version_is_no_lease() {
    for metadata in [json!({}), json!({ "uid": "u" }), json!({ "resourceVersion": "1" })] {
        let error = LeaseRecord::from_json(json!({ "metadata": metadata })).unwrap_err();
        assert_eq!(error.to_string(), "the answer is not a Lease with a uid and a resource version");
    }
}

#[test]
fn each_oddity_of_a_held_lease_is_named() {
    for (spec, said) in [
        (json!({ "leaseDurationSeconds": 15 }), None),
        (json!({ "leaseDurationSeconds": 15, "leaseTransitions": null }), None),
        (json!({ "leaseDurationSeconds": 15, "leaseTransitions": 3 }), None),
        (
            json!({ "leaseDurationSeconds": 15, "leaseTransitions": -3 }),
            Some("the transitions are not a count"),
        ),
        (json!({ "leaseDurationSeconds": 86_400 }), None),
        (json!({ "leaseDurationSeconds": 86_401 }), Some("the duration is longer than a day")),
        (json!({}), Some("the duration is missing or not a positive number")),
    ] {
        let oddity = held(&spec).oddity();
        assert!(
            said.map_or(oddity.is_none(), |said| oddity.is_some_and(|it| it.starts_with(said))),
            "{spec}: {oddity:?}"
        );
    }
}

#[test]
fn a_holder_that_is_no_text_is_odd_and_a_missing_one_is_not() {
    for (holder, odd) in [(json!(7), true), (json!(null), false), (json!(""), false)] {
        let metadata = json!({ "uid": "u", "resourceVersion": "1" });
        let lease = json!({ "metadata": metadata, "spec": { "holderIdentity": holder } });
        assert_eq!(LeaseRecord::from_json(lease).unwrap().oddity().is_some(), odd, "{holder}");
    }
}
