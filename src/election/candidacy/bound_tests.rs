//! What a candidate decides at the very moment of a bound, and whom it then waits for.

use super::{
    Candidacy, Decision, Inputs, Next, Task,
    examples::{at, candidacy, edited, held, leading, written},
    next_world::NEVER,
};
use crate::{
    election::{crowd::STANDBYS, hooks::LeaseCall, preemption::HANDOVER},
    lease::LeaseRecord,
};
use serde_json::{Value, json};

/// The claim stands in the lease, and its answer was lost. A claim that waits for no former holder begins a new term
/// in a new claim.
fn waits_for_no_former_holder(candidacy: &Candidacy, now: u64) -> bool {
    candidacy.formers.until(at(now)).is_none() && candidacy.decide(at(now), false) == Decision::Take
}

/// The coordinator names this candidate in `record`.
fn named(record: &LeaseRecord, version: u64) -> LeaseRecord {
    edited(record, version, |lease| {
        lease["spec"]["holderIdentity"] = "me".into();
        lease["spec"].as_object_mut().unwrap().remove("acquireTime");
    })
}

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
        let mut candidacy = candidacy();
        candidacy.observe(held(1, "other", 0), at(0));
        let claim = candidacy.acquisition(at(claimed), "now".into());
        candidacy.observe(written(2, &claim), at(15));
        assert_ne!(waits_for_no_former_holder(&candidacy, 15), overtakes, "claimed at {claimed} s");
    }
}

/// Another candidate has held the lease meanwhile, until 17 s, and may not have heard of the deletion.
#[test]
fn creation_that_lands_at_the_former_holders_end_overtakes_nothing() {
    for (landed, overtakes) in [(16, true), (17, false)] {
        let mut candidacy = candidacy();
        candidacy.observe_absence(None, at(0));
        let claim = candidacy.acquisition(at(1), "now".into());
        candidacy.observe(held(2, "other", 0), at(2));
        let anew = edited(&written(4, &claim), 4, |lease| lease["metadata"]["uid"] = "another".into());
        candidacy.observe(anew, at(landed));
        assert_ne!(waits_for_no_former_holder(&candidacy, 17), overtakes, "landed at {landed} s");
    }
}

/// The successor waits until the end of the preempted candidate's lease at most.
#[test]
fn preempted_candidate_tells_nothing_at_its_leases_end() {
    let mut candidacy = leading();
    candidacy.observe(taken_from_the_fourth_term(3, "other"), at(1));
    let stops = |settles_at| Inputs {
        now: at(1),
        task: Task::GiveUp { failed: 0 },
        leads: false,
        settles_at: at(settles_at),
    };
    assert_eq!(candidacy.next(&stops(1)), Next::Call(LeaseCall::Acknowledge));
    assert_eq!(candidacy.next(&stops(14)), Next::Wait(at(14)), "a write may land until then");
    assert_eq!(candidacy.next(&stops(15)), Next::GivenUp(Ok(())));
}

/// Rule S8: a standby would try only after it.
#[test]
fn s8_deleted_leases_holder_waits_for_no_standby() {
    let standbys = |lease: &mut Value| lease["metadata"]["annotations"] = json!({ STANDBYS: r#"["first"]"# });
    let mut follower = candidacy();
    let other = edited(&held(1, "other", 0), 1, standbys);
    follower.observe(other.clone(), at(0));
    follower.observe_absence(Some(&other), at(1));
    assert!(follower.turn() > at(15), "a follower waits for the standby");

    let mut holder = leading();
    let own = edited(holder.record().unwrap(), 3, standbys);
    holder.observe(own.clone(), at(1));
    holder.observe_absence(Some(&own), at(2));
    assert!(holder.turn() <= at(2));
    holder.observe_absence(None, at(3));
    assert!(holder.turn() <= at(3), "a read says the same");
}

/// It has not seen how the lease changed hands. The former holder's lease is the longer one.
#[test]
fn s6_named_candidate_waits_for_a_holder_that_was_replaced_unseen() {
    let mut candidacy = candidacy();
    candidacy.coordinate();
    candidacy.observe(held(1, "other", 0), at(0));
    let replaced = edited(&held(2, "third", 0), 2, |lease| {
        lease["spec"]["leaseDurationSeconds"] = 5.into();
        lease["spec"]["leaseTransitions"] = 4.into();
    });
    candidacy.observe(replaced.clone(), at(1));
    candidacy.observe(named(&replaced, 3), at(2));
    candidacy.acquisition(at(2), "now".into());
    assert_eq!(candidacy.formers.until(at(2)), Some(at(15)));
}

/// The coordinator names one candidate after the other before the first holder's time is over. The last one waits for
/// the term before its own only.
#[test]
fn s4_word_to_a_successor_waits_for_the_former_holder_too() {
    let mut candidacy = candidacy();
    candidacy.coordinate();
    let former = held(1, "other", 0);
    candidacy.observe(former.clone(), at(0));
    candidacy.observe(named(&former, 2), at(3));
    let claim = candidacy.acquisition(at(3), "now".into());
    candidacy.claim_is_settled();
    candidacy.observe(written(3, &claim), at(3));
    assert_eq!(candidacy.decide(at(3), false), Decision::Hold(at(15)));
    candidacy.observe(taken_from_the_fourth_term(4, "third"), at(4));
    let stops =
        |now| Inputs { now: at(now), task: Task::GiveUp { failed: 0 }, leads: false, settles_at: NEVER };
    assert_eq!(candidacy.next(&stops(4)), Next::Wait(at(15)));
    assert_eq!(candidacy.next(&stops(15)), Next::Call(LeaseCall::Acknowledge));
}
