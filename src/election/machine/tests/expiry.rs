//! Rule S6: each holder has its time, and its release alone ends it early.

use super::examples::{Stage, seconds};
use crate::election::{hooks::LeaseCall::Acquire, machine::WAITS_FOR};
use serde_json::json;

#[test]
fn s6_a_silent_holder_is_succeeded_at_the_instant_of_its_expiry() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(15) - 1);
    assert!(!stage.calls.contains(&Acquire));
    stage.pass(6);
    assert!(stage.is_open());
}

#[test]
fn s6_each_renewal_begins_the_wait_anew() {
    let mut stage = Stage::new();
    for _ in 0..5 {
        stage.client_go("other", 3);
        stage.pass(seconds(14));
    }
    assert!(!stage.calls.contains(&Acquire));
}

#[test]
fn s6_the_recorded_duration_counts() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.edit(|lease| lease["spec"]["leaseDurationSeconds"] = json!(40));
    stage.opens_within(seconds(39)..seconds(41));
}

#[test]
fn s6_a_duration_that_is_edited_ends_nothing_early() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(3));
    stage.edit(|lease| lease["spec"]["leaseDurationSeconds"] = json!(1));
    stage.pass(seconds(14));
    assert!(!stage.is_open());
}

/// A person writes another holder into the lease, and for how long. The claim speaks of the holder before it.
#[test]
fn s6_the_duration_of_a_holder_that_a_person_writes_counts() {
    let mut stage = Stage::leading();
    stage.edit(|lease| {
        lease["spec"]["holderIdentity"] = json!("outsider");
        lease["spec"]["leaseDurationSeconds"] = json!(3_600);
    });
    stage.opens_within(seconds(3_599)..seconds(3_601));
}

/// The claim itself says how long its holder counts on it, so a newcomer is not misled either.
#[test]
fn s6_a_newcomer_reads_the_duration_of_the_claim() {
    let mut stage = Stage::new();
    stage.claim("other", 7, 3, None);
    let mut object = stage.lease.clone().unwrap();
    object["spec"]["leaseDurationSeconds"] = json!(1);
    let mut newcomer = Stage::new();
    newcomer.put(object);
    newcomer.pass(seconds(14));
    assert!(!newcomer.is_open());
}

#[test]
fn a_release_is_taken_at_once() {
    for by_this_crate in [true, false] {
        let mut stage = Stage::new();
        stage.client_go("other", 3);
        stage.pass(seconds(1));
        if by_this_crate {
            stage.claim("", 7, 3, None);
        } else {
            stage.client_go("", 3);
        }
        stage.pass(6);
        assert!(stage.is_open());
    }
}

/// A person who empties the holder leaves its duration. Its process may write on.
#[test]
fn s6_a_lease_that_a_person_empties_is_waited_for() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(1));
    stage.edit(|lease| lease["spec"]["holderIdentity"] = json!(""));
    stage.opens_within(seconds(14)..seconds(16));
}

#[test]
fn a_holder_takes_back_at_once_what_a_person_has_emptied() {
    let mut stage = Stage::leading();
    stage.pass(100);
    stage.edit(|lease| lease["spec"]["holderIdentity"] = json!(""));
    assert!(!stage.is_open());
    stage.pass(5);
    assert!(stage.is_open());
    assert_eq!(stage.annotation(WAITS_FOR).unwrap(), "{}", "its own writes are its own");
}
