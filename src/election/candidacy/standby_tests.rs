//! When a follower asks for a place among the standbys, and what it does after a lost race.

use super::{
    Inputs, Next, Task,
    examples::{at, candidacy},
    state::Candidacy,
};
use crate::{
    election::{crowd::STANDBYS, hooks::LeaseCall, preemption::HANDOVER},
    lease::{ErrLockKind, LeaseRecord},
};
use serde_json::{Value, json};
use std::time::Duration;

fn inputs(seconds: u64) -> Inputs {
    Inputs { now: at(seconds), task: Task::Contend, leads: false, settles_at: at(0) }
}

/// The lease of another candidate, with this annotation and this count of transitions.
fn held(annotation: &str, value: &str, transitions: &Value) -> LeaseRecord {
    let metadata = json!({ "name": "operator", "uid": "u", "resourceVersion": "7",
                           "annotations": { annotation: value } });
    let spec = json!({ "holderIdentity": "other", "leaseDurationSeconds": 15, "acquireTime": "then",
                       "renewTime": "now", "leaseTransitions": transitions });
    LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// A follower that watches this lease since second 0.
fn follower(lease: LeaseRecord) -> Candidacy {
    let mut follower = candidacy();
    follower.contact.watch_begins(at(0));
    follower.contact.begin(at(0));
    follower.observe_read(Some(lease), None, at(0));
    follower.contact.recover(LeaseCall::Read, at(0));
    follower
}

fn joins(follower: &Candidacy, inputs: &Inputs) -> bool {
    follower.joins_from(inputs).is_some()
}

#[test]
fn only_a_follower_of_a_live_holder_joins() {
    let plain = || follower(held("team", "a", &json!(3)));
    assert!(joins(&plain(), &inputs(2)));
    assert!(!joins(&plain(), &inputs(15)), "the holder's time is over");
    assert!(!joins(&plain(), &Inputs { leads: true, ..inputs(2) }), "it leads");
    let mut blind = plain();
    blind.contact.watch_ends(at(1));
    assert!(!joins(&blind, &inputs(2)), "without a watch it would not see when to go");
    let mut failing = plain();
    failing.contact.fail(ErrLockKind::Timeout, false, at(1));
    assert!(!joins(&failing, &inputs(2)), "its calls fail");
    let handover = |text| follower(held(HANDOVER, text, &json!(4)));
    assert!(!joins(&handover("from 3 to 4"), &inputs(2)), "a handover is under way");
    assert!(joins(&handover("from 3 to 4, done"), &inputs(2)));
}

/// A claim repeats what stands in the lease. What cannot be repeated would be written in another way, and the other
/// candidates would take that for a renewal.
#[test]
fn s6_place_in_an_odd_lease_is_not_given_back() {
    let leaves = |transitions| {
        let follower = follower(held(STANDBYS, r#"["me"]"#, &transitions));
        follower.leaving().is_some()
    };
    assert!(leaves(json!(3)));
    assert!(!leaves(json!(-3)) && !leaves(Value::Null));
}

#[test]
fn loser_of_a_race_reads_if_the_watch_stays_silent() {
    let lost = || {
        let mut loser = follower(held("team", "a", &json!(3)));
        let _ = loser.acquisition(at(15), "now".to_owned());
        loser.contact.begin(at(15));
        loser.contact.lose_a_race(at(15));
        loser
    };
    let Next::Wait(until) = lost().next(&inputs(15)) else { panic!("it reads at once") };
    assert!(until > at(15) && until <= at(15).saturating_add(Duration::from_millis(500)), "{until:?}");
    let then = Inputs { now: until, ..inputs(15) };
    assert_eq!(lost().next(&then), Next::Call(LeaseCall::Read));

    let mut told = lost();
    let winner = held("team", "b", &json!(4));
    told.contact.watch_tells(&winner, at(15));
    assert!(!told.contact.is_in_doubt() && !told.contact.is_failing());
}
