//! Priority asks before it takes.

use super::examples::{Stage, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Acquire, Ask, Release},
        machine::{ASKED, Busy, Gate, Next, Restraint},
        priority::HOLDER_KEY,
    },
    leadership::Intent,
};
use serde_json::json;
use std::time::Duration;

fn preferred() -> Stage {
    Stage::preferred("2", |holder| holder.parse().unwrap_or(0) < 2)
}

#[test]
fn a_preferred_candidate_asks_a_live_holder_and_takes_nothing() {
    let mut stage = preferred();
    stage.claim("other", 7, 3, None);
    stage.pass(seconds(1));
    assert!(stage.calls.contains(&Ask) && !stage.calls.contains(&Acquire));
    assert_eq!(stage.annotation(ASKED).unwrap(), "me\n2");
    assert_eq!(stage.holder(), "other");
    // The holder releases for it.
    stage.claim("", 7, 3, None);
    stage.pass(1);
    assert!(stage.is_open());
    assert_eq!(stage.annotation(ASKED), None);
    assert_eq!(stage.annotation(HOLDER_KEY).unwrap(), "2");
}

#[test]
fn a_candidate_that_is_not_preferred_asks_nobody() {
    for key in ["2", "3"] {
        let mut stage = preferred();
        stage.claim("other", 7, 3, None);
        stage.annotate(HOLDER_KEY, key);
        stage.pass(seconds(5));
        assert!(!stage.calls.contains(&Ask), "{key}");
    }
}

#[test]
fn a_candidate_that_asks_no_holder_takes_a_free_lease() {
    let mut stage = preferred();
    stage.busy.restraint = Restraint::AsksNoHolder;
    stage.claim("other", 7, 3, None);
    stage.pass(seconds(5));
    assert!(!stage.calls.contains(&Ask) && stage.holder() == "other");
    stage.claim("", 7, 3, None);
    stage.pass(1);
    assert!(stage.is_open());
}

#[test]
fn a_question_that_a_person_removes_is_asked_again_once_a_period() {
    let mut stage = preferred();
    stage.claim("other", 7, 3, None);
    for _ in 0..9 {
        stage.pass(200);
        if stage.annotation(ASKED).is_some() {
            stage.edit(|lease| drop(lease["metadata"]["annotations"].as_object_mut().unwrap().remove(ASKED)));
        }
    }
    assert_eq!(stage.calls.iter().filter(|call| **call == Ask).count(), 1, "{:?}", stage.calls);
    stage.pass(500);
    assert_eq!(stage.calls.iter().filter(|call| **call == Ask).count(), 2, "{:?}", stage.calls);
}

#[test]
fn a_holder_that_is_asked_stops_in_order_and_leaves_the_lease_to_the_asker() {
    let mut stage = Stage::leading();
    stage.busy.writes = true;
    stage.annotate(ASKED, "other\n2");
    stage.pass(10);
    assert!(matches!(stage.gate(), Gate::Closing { .. }), "admitted writes finish");
    stage.busy.writes = false;
    stage.pass(10);
    assert!(stage.calls.contains(&Release) && stage.holder().is_empty());
    stage.calls.clear();
    stage.pass(seconds(2));
    assert!(!stage.calls.contains(&Acquire));
    stage.pass(600);
    assert!(stage.is_open(), "no candidate has come");
    assert_eq!(stage.annotation(ASKED), None);
}

/// A write hangs until the deadline, and may land for the safety margin after that.
#[test]
fn s4_a_holder_that_is_asked_takes_no_new_term_when_its_own_has_run_out() {
    for lands_for in [3, 5] {
        let mut stage = Stage::leading();
        stage.pass(100);
        stage.busy.writes = true;
        stage.annotate(ASKED, "other\n2");
        stage.pass(10);
        let deadline = stage.deadline();
        stage.pass(deadline.saturating_since(stage.now).as_millis().try_into().unwrap());
        stage.busy.writes = false;
        stage.busy.settle_at = deadline.saturating_add(Duration::from_secs(lands_for));
        stage.pass(seconds(lands_for) + 10);
        assert_eq!(stage.calls.contains(&Release), lands_for == 3, "or it runs out");
        stage.pass(seconds(2));
        assert!(!stage.calls.contains(&Acquire), "{:?}", stage.calls);
        assert!(stage.annotation(ASKED).is_some(), "the lease is left to the asker");
        stage.pass(seconds(1));
        assert!(stage.is_open(), "no candidate has come");
    }
}

#[test]
fn a_holder_yields_to_whom_it_does_not_precede() {
    // The question, whether a holder with key 2 yields, and one without a key.
    for (question, keyed, plain) in [
        ("other\n1", false, true),
        ("other\n2", false, true),
        ("other\n3", true, true),
        ("other", true, true),
        ("me", false, false),
    ] {
        for (mut stage, yields) in [(preferred(), keyed), (Stage::new(), plain)] {
            stage.pass(50);
            assert!(stage.is_open());
            stage.annotate(ASKED, question);
            stage.pass(20);
            assert_eq!(!stage.is_open(), yields, "{question:?}");
        }
    }
}

/// What a person has asked for stays, and so does the question of one that is preferred more.
#[test]
fn a_standing_question_is_not_written_over_by_one_that_is_preferred_less() {
    for (question, asks) in [("other\n1", true), ("other\n3", false), ("other", false)] {
        let mut stage = preferred();
        stage.claim("holder", 7, 3, None);
        stage.annotate(ASKED, question);
        stage.pass(seconds(1));
        assert_eq!(stage.calls.contains(&Ask), asks, "{question:?}");
    }
}

/// Istio's elector cannot be asked. That the question stands shows that an annotation does.
#[test]
fn from_another_elector_the_lease_is_taken_and_its_time_waited() {
    let mut stage = preferred();
    stage.client_go("istio", 3);
    stage.pass(seconds(1));
    assert_eq!(stage.calls, [Ask, Acquire]);
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.opens_within(seconds(13)..seconds(15));
}

#[test]
fn a_webhook_that_strips_annotations_keeps_priority_from_taking() {
    let mut stage = preferred();
    stage.client_go("istio", 3);
    let stripped = stage.record();
    stage.answers.extend([Ok(stripped.clone()), Ok(stripped.clone()), Ok(stripped)]);
    stage.pass(seconds(1));
    assert!(!stage.calls.contains(&Acquire), "{:?}", stage.calls);
}

#[test]
fn a_lease_that_makes_no_sense_is_not_asked_for() {
    let mut stage = preferred();
    stage.client_go("other", 3);
    stage.edit(|lease| lease["spec"]["leaseDurationSeconds"] = json!("soon"));
    stage.pass(seconds(10));
    assert!(!stage.calls.contains(&Ask) && !stage.calls.contains(&Acquire));
}

#[test]
fn a_lease_that_is_released_for_another_is_left_to_it_for_a_while() {
    let mut stage = Stage::new();
    stage.claim("other", 7, 3, None);
    stage.annotate(ASKED, "third");
    stage.claim("", 7, 3, None);
    stage.pass(seconds(2));
    let trouble = stage.machine.unanswered_question(stage.now).unwrap();
    assert!(trouble.starts_with(r#""third"; if there is no such"#), "{trouble}");
    assert!(!stage.is_open());
    stage.pass(600);
    assert!(stage.is_open());
}

#[test]
fn a_claim_removes_the_key_of_the_holder_before_it() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.annotate(HOLDER_KEY, "old");
    stage.client_go("", 3);
    stage.pass(20);
    assert!(stage.is_open() && stage.annotation(HOLDER_KEY).is_none());
    let mut stage = preferred();
    stage.pass(20);
    stage.order(Intent::Leave);
    stage.pass(20);
    assert!(stage.done == Some(Ok(())) && stage.annotation(HOLDER_KEY).is_none(), "a release, too");
}

/// A script that moves leadership runs twice. The question that names the holder has had its answer.
#[test]
fn question_that_names_the_holder_counts_no_more() {
    let mut stage = preferred();
    stage.claim("other", 7, 3, None);
    stage.annotate(ASKED, "other");
    stage.pass(seconds(1));
    assert!(stage.calls.contains(&Ask), "{:?}", stage.calls);
    // It stops. No candidate waits for it.
    let mut third = Stage::new();
    third.claim("other", 7, 3, None);
    third.annotate(ASKED, "other");
    third.claim("", 7, 3, None);
    third.pass(10);
    assert!(third.is_open() && third.machine.unanswered_question(third.now).is_none());
}

/// The log of a clean handover is quiet: a candidate that watches takes the lease within milliseconds.
#[test]
fn free_lease_is_no_trouble_before_its_asker_is_late() {
    let mut stage = Stage::new();
    stage.claim("other", 7, 3, None);
    stage.annotate(ASKED, "third\n2");
    stage.claim("", 7, 3, None);
    stage.pass(490);
    assert_eq!(stage.machine.unanswered_question(stage.now), None);
    let wall = stage.wall();
    let Next::Wait(until) = stage.machine.poll(Busy::default(), wall, stage.now) else { panic!() };
    assert!(until.saturating_since(stage.now) < Duration::from_millis(20), "it is looked at then");
    stage.pass(20);
    assert!(stage.machine.unanswered_question(stage.now).unwrap().starts_with("\"third\""));
}

/// Another candidate has another idea of keys, and the comparison panics.
#[test]
fn panic_of_the_comparison_precedes_no_candidate() {
    let mut stage = Stage::preferred("2", |key| key.parse::<u32>().unwrap() < 2);
    stage.claim("other", 7, 3, None);
    stage.annotate(HOLDER_KEY, "stable");
    stage.pass(seconds(1));
    stage.annotate(HOLDER_KEY, "1");
    stage.pass(seconds(1));
    assert!(!stage.calls.contains(&Ask), "{:?}", stage.calls);
}
