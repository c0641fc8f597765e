//! Tests of a candidate that a coordinator chooses, with examples and with random steps.

use super::{
    Candidacy, Decision, Inputs, Next, Task,
    examples::{at, candidacy, edited, held, written},
    next_world::NEVER,
};
use crate::{
    election::{hooks::LeaseCall, preemption::Handover},
    lease::LeaseRecord,
};
use proptest::prelude::*;
use serde_json::json;

fn coordinated() -> Candidacy {
    let mut candidacy = candidacy();
    candidacy.coordinate();
    candidacy
}

/// `record` after the coordinator of the API server has named `holder`.
fn named(record: &LeaseRecord, version: u64, holder: &str) -> LeaseRecord {
    edited(record, version, |lease| {
        let spec = &mut lease["spec"];
        spec["holderIdentity"] = holder.into();
        spec["strategy"] = "OldestEmulationVersion".into();
        spec["leaseDurationSeconds"] = 5.into();
        spec["renewTime"] = "named".into();
        let spec = spec.as_object_mut().unwrap();
        spec.remove("acquireTime");
        spec.remove("preferredHolder");
    })
}

fn preferring(record: &LeaseRecord, version: u64, preferred: &str) -> LeaseRecord {
    edited(record, version, |lease| lease["spec"]["preferredHolder"] = preferred.into())
}

fn inputs(task: Task, leads: bool, now: u64) -> Inputs {
    Inputs { now: at(now), task, leads, settles_at: NEVER }
}

/// A candidate that was named, and leads since 0 s. Returns its lease at version 3.
fn leading() -> (Candidacy, LeaseRecord) {
    let mut candidacy = coordinated();
    let free = held(1, "", 0);
    candidacy.observe(free.clone(), at(0));
    candidacy.observe(named(&free, 2, "me"), at(0));
    let claim = candidacy.acquisition(at(0), "now".into());
    candidacy.claim_is_settled();
    let own =
        edited(&written(3, &claim), 3, |lease| lease["spec"]["strategy"] = "OldestEmulationVersion".into());
    candidacy.observe(own.clone(), at(0));
    candidacy.stood(at(0));
    candidacy.opened(own.term());
    (candidacy, own)
}

#[test]
fn lease_without_holder_waits_for_the_coordinator() {
    let mut candidacy = coordinated();
    candidacy.observe(held(1, "", 0), at(0));
    assert_eq!(candidacy.decide(at(0), false), Decision::Await);
    candidacy.observe(held(2, "other", 0), at(0));
    assert_eq!(candidacy.decide(at(0), false), Decision::WaitUntil(at(15)));
    assert_eq!(candidacy.decide(at(15), false), Decision::Await, "expired");
    candidacy.observe_absence(None, at(20));
    assert_eq!(candidacy.decide(at(20), false), Decision::Await, "deleted");
}

#[test]
fn named_candidate_acquires_in_a_new_term() {
    let mut candidacy = coordinated();
    let free = held(1, "", 0);
    candidacy.observe(free.clone(), at(0));
    candidacy.observe(named(&free, 2, "me"), at(0));
    assert!(!candidacy.is_mine(), "the coordinator wrote it");
    assert_eq!(candidacy.decide(at(0), false), Decision::Take);
    let claim = candidacy.acquisition(at(0), "now".into());
    assert_eq!((claim.holder.as_str(), claim.transitions, claim.duration_seconds), ("me", 4, 15));
    candidacy.observe(written(3, &claim), at(0));
    assert!(candidacy.is_current() && candidacy.formers.until(at(0)).is_none());
}

/// The coordinator compares wall clocks, so it may name the next holder early.
#[test]
fn s6_named_candidate_waits_for_an_unreleased_holder() {
    let mut candidacy = coordinated();
    let before = held(1, "other", 0);
    candidacy.observe(before.clone(), at(0));
    candidacy.observe(named(&before, 2, "third"), at(3));
    candidacy.observe(named(&before, 3, "me"), at(8));
    assert_eq!(candidacy.decide(at(8), false), Decision::Take);
    let claim = candidacy.acquisition(at(8), "now".into());
    candidacy.observe(written(4, &claim), at(8));
    assert_eq!(candidacy.record().and_then(Handover::under_way).map(|it| it.from), Some(3));
    assert_eq!((candidacy.formers.until(at(8)), candidacy.formers.until(at(15))), (Some(at(15)), None));
    assert_eq!(candidacy.decide(at(8), false), Decision::Hold(at(15)));
    // Nor does it release the lease before that: no other candidate would wait for the former holder.
    assert_eq!(candidacy.next(&inputs(Task::StayAway, false, 8)), Next::Call(LeaseCall::Read));
    candidacy.observe(preferring(&written(4, &claim), 5, "third"), at(9));
    assert_eq!(candidacy.decide(at(9), false), Decision::Hold(at(15)));
}

#[test]
fn named_candidate_does_not_wait_for_a_holder_that_has_released() {
    let mut candidacy = coordinated();
    candidacy.observe(held(1, "other", 0), at(0));
    candidacy.observe(held(2, "other", 5), at(5));
    let free = held(3, "", 6);
    candidacy.observe(free.clone(), at(6));
    candidacy.observe(named(&free, 4, "me"), at(6));
    candidacy.acquisition(at(6), "now".into());
    assert_eq!(candidacy.formers.until(at(6)), None);
}

#[test]
fn s6_named_candidate_waits_for_the_holder_of_a_deleted_lease() {
    let mut candidacy = coordinated();
    candidacy.observe(held(1, "other", 0), at(0));
    candidacy.observe_absence(Some(&held(2, "other", 0)), at(1));
    let mut anew = named(&held(3, "", 0), 3, "me").into_json();
    anew["metadata"]["uid"] = "another".into();
    candidacy.observe(LeaseRecord::from_json(anew).unwrap(), at(2));
    candidacy.acquisition(at(2), "now".into());
    assert_eq!(candidacy.formers.until(at(2)), Some(at(15)));
}

/// It has not seen the former holder, so it waits as for a live one.
#[test]
fn s6_candidate_named_before_its_first_read_waits() {
    let mut candidacy = coordinated();
    candidacy.observe(named(&held(1, "", 0), 2, "me"), at(0));
    candidacy.acquisition(at(0), "now".into());
    assert_eq!(candidacy.formers.until(at(0)), Some(at(15)));
}

/// Another process with this identity was faster.
#[test]
fn named_twin_does_not_take_the_acquired_lease() {
    let mut candidacy = coordinated();
    let free = held(1, "", 0);
    candidacy.observe(free.clone(), at(0));
    candidacy.observe(named(&free, 2, "me"), at(0));
    candidacy.observe(held(3, "me", 0), at(0));
    assert_eq!(candidacy.decide(at(0), false), Decision::WaitUntil(at(15)));
    assert!(candidacy.oddity().is_some_and(|odd| odd.contains("another process")));
}

/// The coordinator never names the candidate anew that an expired lease names already.
#[test]
fn own_expired_or_inherited_lease_is_taken_back() {
    let (mut candidacy, _) = leading();
    assert_eq!(candidacy.decide(at(60), false), Decision::Take);
    candidacy = coordinated();
    candidacy.observe(held(1, "me", 0), at(0));
    assert_eq!(candidacy.decide(at(0), false), Decision::Take);
}

#[test]
fn s4_preferred_candidate_gets_the_lease_after_the_writes() {
    let (mut candidacy, own) = leading();
    candidacy.observe(preferring(&own, 4, "me"), at(1));
    assert_eq!(candidacy.decide(at(1), true), Decision::Renew);
    candidacy.observe(preferring(&own, 5, "other"), at(1));
    assert_eq!(candidacy.decide(at(1), true), Decision::GiveWay);
    // An admitted write is under way.
    let writing = Inputs { settles_at: at(6), ..inputs(Task::Contend, true, 1) };
    assert_eq!(candidacy.next(&writing), Next::Wait(at(2)));
    let writing = Inputs { now: at(2), settles_at: at(7), ..writing };
    assert_eq!(candidacy.next(&writing), Next::Call(LeaseCall::Renew), "still renewing");
    assert_eq!(candidacy.next(&inputs(Task::Contend, true, 1)), Next::Call(LeaseCall::Release));
    let release = candidacy.release(at(1), "later".into());
    let released = preferring(&own, 5, "other").with(&release).into_json();
    assert_eq!(
        (&released["spec"]["holderIdentity"], &released["spec"]["strategy"]),
        (&json!(""), &json!("OldestEmulationVersion"))
    );
}

/// Its gate may stay shut for long, and the preferred candidate waits.
#[test]
fn candidate_whose_gate_is_shut_gives_way_at_once() {
    let mut candidacy = coordinated().asks_before_opening();
    let free = held(1, "", 0);
    candidacy.observe(free.clone(), at(0));
    candidacy.observe(named(&free, 2, "me"), at(0));
    let claim = candidacy.acquisition(at(0), "now".into());
    candidacy.claim_is_settled();
    candidacy.observe(written(3, &claim), at(0));
    assert_eq!(candidacy.decide(at(1), false), Decision::Hold(at(10)));
    candidacy.observe(preferring(&written(3, &claim), 4, "other"), at(1));
    assert_eq!(candidacy.next(&inputs(Task::Contend, false, 1)), Next::Call(LeaseCall::Release));
}

/// The work of a term orders the release itself, and an order to stop does too.
#[test]
fn s4_lease_of_running_work_is_not_released() {
    let (mut candidacy, own) = leading();
    candidacy.observe(preferring(&own, 4, "other"), at(1));
    assert_eq!(candidacy.next(&inputs(Task::Hold, true, 1)), Next::Wait(at(2)));
    assert_eq!(candidacy.next(&inputs(Task::Hold, true, 2)), Next::Call(LeaseCall::Renew));
    let order = inputs(Task::GiveUp { failed: 0 }, true, 1);
    assert_eq!(candidacy.next(&order), Next::Call(LeaseCall::Release));
}

/// The gate is closed in this term, and must not stay closed for ever.
#[test]
fn term_that_gives_way_ends_even_if_the_coordinator_changes_its_mind() {
    let (mut candidacy, own) = leading();
    candidacy.observe(preferring(&own, 4, "other"), at(1));
    candidacy.begin_to_give_way();
    candidacy.observe(edited(&own, 5, |_| {}), at(1));
    assert_eq!(candidacy.decide(at(1), true), Decision::GiveWay);
    let released = own.with(&candidacy.release(at(1), "later".into()));
    candidacy.observe(edited(&released, 6, |_| {}), at(1));
    assert_eq!(candidacy.decide(at(1), false), Decision::Await);
    candidacy.observe(named(&released, 7, "me"), at(2));
    assert_eq!(candidacy.decide(at(2), false), Decision::Take);
}

#[test]
fn named_candidate_leaves_the_lease_to_a_preferred_one() {
    let mut candidacy = coordinated();
    let naming = named(&held(1, "", 0), 2, "me");
    candidacy.observe(held(1, "", 0), at(0));
    candidacy.observe(preferring(&naming, 3, "other"), at(0));
    assert_eq!(candidacy.decide(at(0), false), Decision::WaitUntil(at(5)));
    // It ran out, so the preferred one is gone. It takes it to release it: only a free lease is named anew.
    assert_eq!(candidacy.decide(at(5), false), Decision::Take);
    let claim = candidacy.acquisition(at(5), "now".into());
    candidacy.claim_is_settled();
    candidacy.observe(preferring(&written(4, &claim), 4, "other"), at(5));
    assert_eq!(candidacy.next(&inputs(Task::Contend, false, 5)), Next::Call(LeaseCall::Release));
}

#[test]
fn uncoordinated_candidate_ignores_the_coordinator() {
    let mut candidacy = candidacy();
    let free = held(1, "", 0);
    candidacy.observe(free.clone(), at(0));
    assert_eq!(candidacy.decide(at(0), false), Decision::Take);
    let claim = candidacy.acquisition(at(0), "now".into());
    let own = written(2, &claim);
    candidacy.observe(own.clone(), at(0));
    candidacy.opened(own.term());
    candidacy.observe(preferring(&own, 3, "other"), at(0));
    assert_eq!(candidacy.decide(at(0), true), Decision::Renew);
    candidacy.observe(named(&own, 4, "me"), at(0));
    assert!(matches!(candidacy.decide(at(0), true), Decision::WaitUntil(_)), "a twin");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to the lease: a coordinated candidate acquires only a lease that names it, and opens no gate
    /// while an unreleased holder that it has seen may still be live.
    #[test]
    fn s6_candidate_acquires_only_what_names_it(
        steps in prop::collection::vec((0_u8..8, 0_u64..20), 1..60),
    ) {
        let mut candidacy = coordinated();
        let (mut now, mut version) = (0, 1);
        let mut lease = held(1, "", 0);
        // The end of the time of the last other holder that has not released.
        let mut live_until = at(0);
        let mut live = false;
        for (what, time) in steps {
            version += 1;
            let before = lease.clone();
            match what {
                0 => lease = held(version, "other", version),
                1 => lease = edited(&lease, version, |lease| {
                    lease["spec"]["holderIdentity"] = "".into();
                    lease["spec"]["acquireTime"] = format!("released at {version}").into();
                    lease["spec"]["leaseDurationSeconds"] = 1.into();
                }),
                // A user frees it, which is no word of its holder.
                6 => lease = edited(&lease, version, |lease| lease["spec"]["holderIdentity"] = "".into()),
                2 => lease = named(&lease, version, "me"),
                3 => lease = named(&lease, version, "other"),
                4 => lease = preferring(&lease, version, "other"),
                5 => now += time,
                _ => {}
            }
            if what == 1 && before.holder() == Some("other") {
                live = false;
            }
            candidacy.observe(lease.clone(), at(now));
            if lease.holder() == Some("other") && lease.acquire_time().is_some() && !lease.says_the_same(&before) {
                (live, live_until) = (true, at(now + 15));
            }
            let decision = candidacy.decide(at(now), false);
            if decision == Decision::Take {
                prop_assert_eq!(lease.holder(), Some("me"));
                let claim = candidacy.acquisition(at(now), version.to_string());
                candidacy.claim_is_settled();
                version += 1;
                lease = edited(&lease.with(&claim), version, |_| {});
                candidacy.observe(lease.clone(), at(now));
                let opens = candidacy.formers.until(at(now)).is_none();
                prop_assert!(!(opens && live && at(now) < live_until), "{candidacy:?}");
            }
        }
    }
}
