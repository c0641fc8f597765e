//! What a candidate decides at the very moment of a bound, and whom it then waits for.

use super::{
    Decision, Next, Order, View,
    examples::{at, edited, held, leading, machine, next, preceding, without_term, written},
};
use crate::{
    election::{hooks::LeaseCall, preemption::HANDOVER},
    lease::LeaseRecord,
};
use serde_json::json;

/// `holder` has taken the lease from the live term 4.
fn taken_from_the_fourth_term(version: u64, holder: &str) -> LeaseRecord {
    edited(&held(version, holder, version), version, |lease| {
        lease["spec"]["leaseTransitions"] = 5.into();
        lease["metadata"]["annotations"] = json!({ HANDOVER: "from 4 to 5" });
    })
}

#[test]
fn claim_at_the_end_of_the_lease_overtakes_nothing() {
    for (claimed, overtakes) in [(14, true), (15, false)] {
        let mut machine = machine();
        machine.observe(held(1, "other", 0), at(0));
        let claim = machine.acquisition(at(claimed), "now".into());
        machine.observe(written(2, &claim), at(claimed));
        assert_eq!(machine.is_held_back(at(claimed)), overtakes, "claimed at {claimed} s");
    }
}

/// Another candidate has held the lease meanwhile, until 17 s, and may not have heard of the deletion.
#[test]
fn creation_that_lands_at_the_former_holders_end_opens_at_once() {
    for (landed, decision) in [(16, Decision::Hold(at(17))), (17, Decision::Open)] {
        let mut machine = machine();
        machine.observe_absence(None, at(0));
        let claim = machine.acquisition(at(1), "now".into());
        machine.observe(held(2, "other", 0), at(2));
        let anew = edited(&written(4, &claim), 4, |lease| lease["metadata"]["uid"] = "another".into());
        machine.observe(anew, at(landed));
        assert_eq!(machine.decide(at(landed), false), decision, "landed at {landed} s");
    }
}

/// The successor waits until the end of the preempted candidate's lease at most.
#[test]
fn preempted_candidate_tells_nothing_at_its_leases_end() {
    let mut machine = leading();
    machine.observe(taken_from_the_fourth_term(3, "other"), at(1));
    let stops = |settles_at| {
        next(&machine, Order::GiveUp { failed: 0 }, &View { settles_at: at(settles_at), ..without_term(1) })
    };
    assert_eq!(stops(1), Next::Call(LeaseCall::Acknowledge));
    assert_eq!(stops(14), Next::Wait(at(14)), "a write may land until then");
    assert_eq!(stops(15), Next::GivenUp(Ok(())));
}

/// It has preempted a silent holder, and is preempted before that holder's time is over. The successor waits for the term
/// before its own only.
#[test]
fn s4_word_to_a_successor_waits_for_the_former_holder_too() {
    let mut machine = preceding();
    machine.observe(held(1, "other", 0), at(0));
    let claim = machine.acquisition(at(3), "now".into());
    machine.claims.settle_last();
    machine.observe(written(3, &claim), at(3));
    machine.claims.stood(at(3));
    assert_eq!(machine.decide(at(3), false), Decision::Hold(at(15)));
    machine.observe(taken_from_the_fourth_term(4, "third"), at(4));
    let stops = |now| next(&machine, Order::GiveUp { failed: 0 }, &without_term(now));
    assert_eq!(stops(4), Next::Wait(at(15)));
    assert_eq!(stops(15), Next::Call(LeaseCall::Acknowledge));
}
