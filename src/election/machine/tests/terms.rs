//! How a term begins, goes on and ends.

use super::examples::{Stage, error, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Acquire, Read, Renew},
        machine::{CLAIM, Gate},
    },
    leadership::{Intent, Loss},
    lease::ErrLockKind,
};
use serde_json::json;
use std::time::Duration;

#[test]
fn s1_the_deadline_counts_from_when_the_claim_was_sent() {
    let mut late = Stage::new();
    let call = late.call();
    let _ = late.machine.handle_answer(Ok(late.record()), late.now);
    assert_eq!(call.what, Read);
    late.now = late.now.saturating_add(Duration::from_millis(5));
    let (call, sent) = (late.call(), late.now);
    late.now = late.now.saturating_add(Duration::from_secs(1));
    let answer = late.carry_out(&call);
    late.machine.handle_answer(answer, late.now).unwrap();
    assert_eq!(late.deadline(), sent.saturating_add(Duration::from_secs(10)));
}

#[test]
fn s1_the_deadline_of_a_renewal_counts_from_when_it_was_sent() {
    let mut stage = Stage::leading();
    let mut sent = stage.now;
    stage.play(seconds(2), |stage, call| {
        sent = stage.now;
        stage.now = stage.now.saturating_add(Duration::from_secs(1));
        stage.carry_out(call)
    });
    assert_eq!(
        (stage.calls.as_slice(), stage.deadline()),
        ([Renew].as_slice(), sent.saturating_add(Duration::from_secs(10)))
    );
}

#[test]
fn s1_a_renewal_that_is_answered_after_the_deadline_does_not_revive_the_term() {
    let mut stage = Stage::leading();
    stage.now = stage.now.saturating_add(Duration::from_secs(2));
    let call = stage.call();
    stage.now = stage.deadline();
    let answer = stage.carry_out(&call);
    stage.machine.handle_answer(answer, stage.now).unwrap();
    assert_eq!(stage.gate(), Gate::Shut(Loss::Expired));
}

#[test]
fn s1_a_claim_that_is_answered_after_its_deadline_is_claimed_again() {
    let mut stage = Stage::new();
    let _ = stage.call();
    let _ = stage.machine.handle_answer(Ok(stage.record()), stage.now);
    stage.now = stage.now.saturating_add(Duration::from_millis(5));
    let call = stage.call();
    stage.now = stage.now.saturating_add(Duration::from_secs(10));
    let answer = stage.carry_out(&call);
    stage.machine.handle_answer(answer, stage.now).unwrap();
    assert!(!stage.is_open());
    stage.pass(10);
    assert!(stage.is_open());
    assert_eq!(stage.record().unwrap().transitions(), 2);
}

#[test]
fn s1_the_gate_shuts_at_the_deadline_by_itself() {
    let mut stage = Stage::leading();
    stage.now = stage.deadline();
    assert_eq!(stage.gate(), Gate::Shut(Loss::Expired));
}

#[test]
fn a_renewal_extends_the_term_and_changes_no_name() {
    let mut stage = Stage::leading();
    let Gate::Open { term, .. } = stage.gate() else { panic!() };
    let first = stage.deadline();
    stage.pass(seconds(2));
    assert_eq!(stage.calls, [Renew]);
    assert!(stage.deadline() > first);
    assert!(matches!(stage.gate(), Gate::Open { term: same, .. } if same == term));
}

/// Only an answered write begins a term.
#[test]
fn a_claim_without_an_answer_that_stands_is_claimed_again() {
    let mut stage = Stage::new();
    stage.lands = true;
    stage.answers.extend([Ok(stage.record()), Err(error(ErrLockKind::Timeout))]);
    stage.pass(5);
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.lands = false;
    stage.pass(seconds(2));
    assert!(stage.is_open());
    assert_eq!(stage.record().unwrap().transitions(), 2, "a term of its own");
}

#[test]
fn s7_another_holder_shuts_the_gate_at_once() {
    let mut stage = Stage::leading();
    stage.client_go("other", 1);
    assert_eq!(stage.gate(), Gate::Shut(Loss::Taken));
}

#[test]
fn s7_a_failed_renewal_that_finds_another_holder_shuts_the_gate() {
    let mut stage = Stage::leading();
    let mut object = stage.lease.clone().unwrap();
    object["spec"]["holderIdentity"] = json!("other");
    object["metadata"]["resourceVersion"] = json!("900");
    (stage.lease, stage.version) = (Some(object), 900);
    stage.pass(seconds(3));
    assert_eq!(stage.gate(), Gate::Shut(Loss::Taken));
}

#[test]
fn s8_a_deleted_lease_shuts_the_gate_and_is_made_anew_in_another_term() {
    let mut stage = Stage::leading();
    let before = stage.record().unwrap().uid().to_owned();
    stage.delete();
    assert_eq!(stage.gate(), Gate::Shut(Loss::Deleted));
    stage.pass(50);
    assert!(stage.is_open());
    assert_ne!(stage.record().unwrap().uid(), before);
}

#[test]
fn s11_on_hold_no_term_begins_and_the_present_one_goes_on() {
    let mut stage = Stage::leading();
    stage.order(Intent::Keep);
    stage.pass(seconds(30));
    assert!(stage.is_open(), "it is renewed");
    stage.client_go("other", 1);
    stage.client_go("", 1);
    stage.calls.clear();
    stage.pass(seconds(30));
    assert!(!stage.is_open() && !stage.calls.contains(&Acquire), "{:?}", stage.calls);
    assert!(stage.calls.contains(&Read), "it still learns whom it has to wait for later");
    stage.order(Intent::Contend);
    stage.pass(50);
    assert!(stage.is_open());
}

/// A claim is answered late: this process lets no other term begin. It is given back once the process leaves the lease.
#[test]
fn s11_a_claim_that_is_answered_late_begins_no_term() {
    let mut stage = Stage::new();
    let _ = stage.call();
    let _ = stage.machine.handle_answer(Ok(stage.record()), stage.now);
    stage.now = stage.now.saturating_add(Duration::from_millis(5));
    let call = stage.call();
    stage.order(Intent::Keep);
    let answer = stage.carry_out(&call);
    stage.machine.handle_answer(answer, stage.now).unwrap();
    stage.pass(50);
    assert!(!stage.is_open() && stage.holder() == "me");
    stage.order(Intent::Leave);
    stage.pass(50);
    assert!(!stage.is_open() && stage.holder().is_empty());
}

/// The identity alone says nothing: a person may have written it.
#[test]
fn a_lease_with_this_name_and_no_claim_is_waited_for() {
    let mut stage = Stage::new();
    stage.client_go("me", 4);
    stage.opens_within(seconds(14)..seconds(16));
}

#[test]
fn a_second_process_with_this_identity_is_told_from_this_one() {
    let mut stage = Stage::leading();
    stage.claim("me", 77, 1, None);
    assert_eq!(stage.gate(), Gate::Shut(Loss::Taken));
    let (_, trouble) = stage.machine.oddity().unwrap();
    assert!(trouble.contains("another process uses this identity"), "{trouble}");
    stage.pass(seconds(14));
    assert!(!stage.is_open());
}

#[test]
fn the_fencing_token_is_the_version_of_the_claim() {
    let mut stage = Stage::leading();
    let Gate::Open { term, .. } = stage.gate() else { panic!() };
    assert_eq!(term.fencing_token(), Some(101));
    stage.pass(seconds(5));
    let Gate::Open { term, .. } = stage.gate() else { panic!() };
    assert_eq!(term.fencing_token(), Some(101), "it stays in the term");
}

#[test]
fn a_restored_backup_gives_no_fencing_token() {
    let mut stage = Stage::leading();
    stage.pass(seconds(60));
    let mut object = stage.lease.clone().unwrap();
    object["metadata"]["resourceVersion"] = json!("50");
    object["metadata"]["annotations"][CLAIM] = json!("an old one");
    (stage.lease, stage.version) = (Some(object), 50);
    stage.pass(seconds(60));
    let Gate::Open { term, .. } = stage.gate() else { panic!("{:?}", stage.gate()) };
    assert_eq!(term.fencing_token(), None);
}

/// Such a version says nothing of its order, so only a read is believed.
#[test]
fn a_lock_whose_versions_are_no_numbers_works() {
    let mut stage = Stage::new();
    let name = |stage: &mut Stage| {
        let version = format!("v{}", stage.version);
        stage.lease.as_mut().unwrap()["metadata"]["resourceVersion"] = json!(version);
    };
    name(&mut stage);
    let _ = stage.call();
    let _ = stage.machine.handle_answer(Ok(stage.record()), stage.now);
    stage.now = stage.now.saturating_add(Duration::from_millis(5));
    let call = stage.call();
    stage.carry_out(&call).unwrap();
    name(&mut stage);
    stage.machine.handle_answer(Ok(stage.record()), stage.now).unwrap();
    let Gate::Open { term, .. } = stage.gate() else { panic!("{:?}", stage.gate()) };
    assert_eq!(term.fencing_token(), None);
}

/// A renewal is carried out, and then another one takes the lease. The watch is faster than the answer.
#[test]
fn s7_an_answer_that_is_older_than_the_news_keeps_no_gate_open() {
    let mut stage = Stage::leading();
    stage.now = stage.now.saturating_add(Duration::from_secs(2));
    let call = stage.call();
    let answer = stage.carry_out(&call);
    stage.client_go("thief", 9);
    assert!(!stage.is_open());
    stage.machine.handle_answer(answer, stage.now).unwrap();
    assert!(!stage.is_open());
    assert_eq!(stage.machine.record().unwrap().holder(), Some("thief"));
}

/// Other electors trust the duration in the lease.
#[test]
fn s6_a_term_ends_when_a_person_shortens_its_duration() {
    let mut stage = Stage::leading();
    stage.pass(200);
    stage.edit(|lease| lease["spec"]["leaseDurationSeconds"] = json!(5));
    assert!(!stage.is_open());
    stage.pass(200);
    assert!(stage.is_open(), "it is claimed anew");
    assert_eq!(stage.record().unwrap().duration(), Some(Duration::from_secs(15)));
}
