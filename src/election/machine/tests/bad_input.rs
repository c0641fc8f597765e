//! Leases that make no sense never panic, never open a gate early, and never end the election.

use super::examples::{Stage, seconds};
use crate::{
    election::machine::{ASKED, CLAIM, WAITS_FOR},
    lease::{LONGEST_SANE, LeaseRecord},
};
use serde_json::{Value, json};

/// What a field of the lease may hold.
fn nonsense() -> Vec<Value> {
    let long = "x".repeat(200_000);
    vec![
        Value::Null,
        json!(""),
        json!(" "),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(u64::MAX),
        json!(i64::MIN),
        json!([]),
        json!({}),
        json!(true),
        json!("9999-12-30T22:00:00.999999Z"),
        json!("-009999-01-02T01:59:59Z"),
        json!("0000000000000001 9999-12-30T22:00:00.999999Z - 18446744073709551615s"),
        json!(long),
    ]
}

#[test]
fn any_field_may_hold_anything() {
    for field in ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"] {
        for value in nonsense() {
            let mut stage = Stage::new();
            stage.client_go("other", 3);
            stage.edit(|lease| lease["spec"][field] = value.clone());
            stage.pass(seconds(14));
            assert!(!stage.is_open(), "{field} {value}: too early");
            stage.client_go("", 3);
            stage.pass(seconds(60));
            assert!(stage.is_open(), "{field} {value}: never");
            stage.edit(|lease| lease["spec"][field] = value.clone());
            stage.pass(seconds(60));
        }
    }
}

#[test]
fn any_annotation_may_hold_anything() {
    for name in [CLAIM, WAITS_FOR, ASKED, "leader.istio.io/holder-key"] {
        for value in nonsense() {
            let mut stage = Stage::preferred("2", |_| true);
            stage.claim("other", 7, 3, None);
            stage.edit(|lease| lease["metadata"]["annotations"][name] = value.clone());
            stage.pass(seconds(14));
            assert!(!stage.is_open(), "{name} {value}: too early");
            stage.client_go("", 3);
            stage.pass(seconds(60));
            assert!(stage.is_open(), "{name} {value}: never");
            stage.edit(|lease| lease["metadata"]["annotations"][name] = value.clone());
            stage.pass(seconds(60));
        }
    }
}

#[test]
fn a_lease_that_nobody_has_claimed_is_taken_at_once() {
    for spec in [Value::Null, json!({}), json!([]), json!(""), json!({ "leaseDurationSeconds": 3600 })] {
        let mut stage = Stage::new();
        stage.put(json!({ "metadata": { "uid": "u" }, "spec": spec }));
        stage.pass(10);
        assert!(stage.is_open(), "{spec}");
    }
}

#[test]
fn s6_the_holder_of_a_lease_that_is_wiped_is_waited_for() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(1));
    stage.edit(|lease| lease["spec"] = json!({}));
    stage.opens_within(seconds(14)..seconds(16));
}

#[test]
fn an_absurd_duration_is_respected_while_it_stands_and_cut_once_it_is_gone() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.edit(|lease| lease["spec"]["leaseDurationSeconds"] = json!(2_147_483_647));
    assert!(stage.machine.oddity().unwrap().1.contains("longer than a day"));
    stage.pass(seconds(90_000));
    assert!(!stage.is_open());
    stage.client_go("third", 4);
    stage.client_go("", 4);
    stage.pass(seconds(1));
    assert!(stage.holder() == "me" && !stage.is_open());
    assert!(stage.machine.long_wait(stage.now).unwrap().contains("may write for"));
    let day = u64::try_from(LONGEST_SANE.as_millis()).unwrap();
    stage.pass(day);
    assert!(stage.is_open());
}

#[test]
fn a_long_list_of_names_is_cut_and_waited_for() {
    let list: serde_json::Map<_, _> = (0..1_000).map(|n| (format!("p{n}"), json!(20_000))).collect();
    let mut stage = Stage::new();
    stage.claim("other", 7, 3, Some(&Value::Object(list)));
    stage.claim("", 7, 3, None);
    stage.pass(seconds(1));
    assert!(stage.holder() == "me" && !stage.is_open());
    assert!(stage.annotation(WAITS_FOR).unwrap().len() < 1_000);
    stage.pass(seconds(20));
    assert!(stage.is_open());
}

/// The API stores an `int32`.
#[test]
fn the_count_of_transitions_begins_again_after_its_maximum() {
    let mut stage = Stage::new();
    stage.client_go("", i32::MAX as u64);
    stage.pass(20);
    assert!(stage.is_open());
    assert_eq!(stage.record().as_ref().map(LeaseRecord::transitions), Some(0));
}

/// A clock of another machine was far ahead.
#[test]
fn s6_times_only_grow() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    stage.edit(|lease| lease["spec"]["renewTime"] = json!("2099-01-01T00:00:00.000000Z"));
    stage.pass(seconds(3));
    let time = |stage: &Stage| stage.record().unwrap().renew_time().unwrap().to_owned();
    let first = time(&stage);
    assert!(
        first.as_str() > "2099-01-01T00:00:00.000000Z" && first.starts_with("2099-01-01T00:00:00"),
        "{first}"
    );
    stage.pass(seconds(3));
    assert!(time(&stage) > first && stage.is_open());
}
