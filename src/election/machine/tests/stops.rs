//! A clean stop (rules S3 to S5), and a term that is given away.

use super::examples::{Stage, error, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Acquire, Ask, Read, Release, Renew},
        machine::{Busy, Gate},
    },
    leadership::{Intent, Loss},
    lease::ErrLockKind,
};
use std::time::Duration;

#[test]
fn s4_a_stop_closes_the_gate_lets_writes_finish_and_releases() {
    let mut stage = Stage::leading();
    stage.busy.writes = true;
    stage.order(Intent::Leave);
    stage.pass(seconds(5));
    assert!(matches!(stage.gate(), Gate::Closing { .. }));
    assert_eq!(stage.calls, [], "it is not renewed any more");
    stage.busy.writes = false;
    stage.pass(10);
    assert_eq!((stage.calls.as_slice(), stage.done), ([Release].as_slice(), Some(Ok(()))));
    assert!(stage.holder().is_empty());
    assert_eq!(stage.gate(), Gate::Shut(Loss::Released));
}

#[test]
fn s4_a_write_that_hangs_keeps_the_lease_until_the_deadline_at_most() {
    let mut stage = Stage::leading();
    stage.busy.writes = true;
    stage.order(Intent::Leave);
    stage.pass(seconds(9));
    assert_eq!(stage.done, None);
    stage.now = stage.deadline();
    assert_eq!(stage.gate(), Gate::Shut(Loss::Expired));
    // It is cut off, and may land for as long as the lease lasts.
    stage.busy = Busy { settle_at: stage.now.saturating_add(Duration::from_secs(5)), ..Busy::default() };
    stage.pass(10);
    assert!(stage.done.unwrap().is_err() && stage.holder() == "me");
}

#[test]
fn s4_nothing_is_released_before_a_write_without_an_answer_settles() {
    let mut stage = Stage::leading();
    stage.busy.settle_at = stage.now.saturating_add(Duration::from_secs(5));
    stage.order(Intent::Leave);
    stage.pass(4_999);
    assert_eq!((stage.calls.as_slice(), stage.done), ([].as_slice(), None));
    stage.pass(2);
    assert_eq!((stage.calls.as_slice(), stage.done), ([Release].as_slice(), Some(Ok(()))));
}

#[test]
fn s4_a_write_that_settles_too_late_leaves_the_lease_to_expire() {
    let mut stage = Stage::leading();
    stage.busy.settle_at = stage.now.saturating_add(Duration::from_secs(15));
    stage.order(Intent::Leave);
    stage.pass(10);
    assert!(stage.done.unwrap().unwrap_err().contains("ended without an answer"));
    assert_eq!(stage.gate(), Gate::Shut(Loss::Abandoned));
}

/// A conflict shows that the lease is another's by now. It is left alone.
#[test]
fn s5_only_the_own_term_is_released() {
    let mut stage = Stage::leading();
    let call = {
        stage.order(Intent::Leave);
        stage.call()
    };
    assert_eq!(call.what, Release);
    let mut object = stage.lease.clone().unwrap();
    object["spec"]["holderIdentity"] = "other".into();
    object["metadata"]["resourceVersion"] = "900".into();
    (stage.lease, stage.version) = (Some(object), 900);
    let answer = stage.carry_out(&call);
    assert!(stage.machine.handle_answer(answer, stage.now).is_err());
    stage.pass(seconds(1));
    assert_eq!((stage.calls.as_slice(), stage.done), ([Read].as_slice(), Some(Ok(()))));
    assert_eq!(stage.holder(), "other");
}

#[test]
fn a_stop_of_a_follower_ends_at_once() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(50);
    stage.order(Intent::Leave);
    stage.pass(1);
    assert_eq!(stage.done, Some(Ok(())));
    let mut new = Stage::new();
    new.order(Intent::Leave);
    new.pass(1);
    assert_eq!(new.done, Some(Ok(())));
}

#[test]
fn a_stop_ends_without_a_server() {
    let mut stage = Stage::leading();
    stage.fails(100, ErrLockKind::Unreachable);
    stage.pass(seconds(4));
    stage.calls.clear();
    stage.order(Intent::Leave);
    stage.pass(seconds(3));
    assert_eq!(stage.calls.len(), 3, "failures before the order do not count");
    assert_eq!(stage.done, Some(Err("the calls to the API server failed")));
}

#[test]
fn a_stop_waits_for_an_acquisition_without_an_answer() {
    let mut stage = Stage::new();
    stage.answers.extend([Ok(stage.record()), Err(error(ErrLockKind::Timeout))]);
    stage.pass(5);
    stage.order(Intent::Leave);
    stage.pass(seconds(4));
    assert_eq!(stage.done, None);
    stage.pass(seconds(2));
    assert_eq!(stage.done, Some(Ok(())));
}

#[test]
fn a_stop_releases_an_acquisition_that_lands_late() {
    let mut stage = Stage::new();
    stage.lands = true;
    stage.answers.extend([Ok(stage.record()), Err(error(ErrLockKind::Timeout))]);
    stage.pass(5);
    stage.order(Intent::Leave);
    stage.pass(seconds(1));
    assert_eq!(stage.done, Some(Ok(())));
    assert!(stage.holder().is_empty() && stage.calls.contains(&Release));
}

/// The answer to a read takes long. It was sent before the acquisition landed, so it does not show it.
#[test]
fn a_stop_believes_only_a_read_that_was_sent_after_an_acquisition_could_land() {
    let mut stage = Stage::new();
    stage.answers.push_back(Ok(stage.record()));
    let mut acquisition = None;
    stage.play(6, |stage, call| {
        if call.what == Acquire {
            acquisition = Some(call.clone());
            return Err(error(ErrLockKind::Timeout));
        }
        stage.answer(call)
    });
    stage.order(Intent::Leave);
    stage.play(seconds(20), |stage, call| {
        let answer = stage.carry_out(call);
        if let Some(acquisition) = acquisition.take() {
            stage.now = stage.now.saturating_add(Duration::from_secs(6));
            stage.carry_out(&acquisition).unwrap();
        }
        answer
    });
    assert_eq!(stage.done, Some(Ok(())));
    assert!(stage.holder().is_empty() && stage.calls.contains(&Release), "{:?}", stage.calls);
}

/// An API server takes an acquisition even later, when this process has left the lease already.
#[test]
fn an_acquisition_that_lands_after_the_end_of_a_stop_is_released() {
    let mut stage = Stage::new();
    let _ = stage.call();
    let _ = stage.machine.handle_answer(Ok(stage.record()), stage.now);
    stage.now = stage.now.saturating_add(Duration::from_millis(5));
    let acquisition = stage.call();
    let _ = stage.machine.handle_answer(Err(error(ErrLockKind::Timeout)), stage.now);
    stage.order(Intent::Leave);
    stage.pass(seconds(60));
    assert_eq!((acquisition.what, stage.done.take()), (Acquire, Some(Ok(()))));
    stage.order(Intent::Left { released: true });
    stage.carry_out(&acquisition).unwrap();
    stage.put(stage.lease.clone().unwrap()); // the watch shows it
    assert_eq!(stage.holder(), "me");
    stage.pass(seconds(1));
    assert!(!stage.is_open() && stage.holder().is_empty(), "{:?}", stage.calls);
}

/// The same after a restart: what the process before this one has sent has to land first.
#[test]
fn a_stop_releases_a_late_acquisition_of_a_process_that_has_begun_anew() {
    let mut stage = Stage::new();
    stage.now = stage.now.saturating_add(Duration::from_secs(100));
    stage.others = ("here", 20);
    stage.claim("me", 7, 3, None);
    stage.lands = true;
    stage.answers.extend([Ok(stage.record()), Err(error(ErrLockKind::Timeout))]);
    stage.pass(5);
    stage.order(Intent::Leave);
    stage.pass(seconds(6));
    assert_eq!(stage.done, Some(Ok(())));
    assert!(stage.holder().is_empty() && stage.calls.contains(&Release), "{:?}", stage.calls);
}

/// A create has no answer, and another create came first.
fn creates_without_an_answer(mut stage: Stage) -> Stage {
    stage.lease = None;
    stage.answers.extend([Ok(None), Ok(None), Err(error(ErrLockKind::Timeout))]);
    stage.pass(600);
    assert_eq!(stage.calls, [Read, Read, Acquire]);
    stage.claim("other", 7, 3, None);
    stage
}

/// Now there is no lease, so the create may land, whatever was written over the lease in between.
#[track_caller]
fn a_stop_waits_for_the_create(stage: &mut Stage) {
    stage.delete();
    stage.order(Intent::Leave);
    stage.pass(100);
    assert_eq!(stage.done, None, "the create may land: {:?}", stage.calls);
}

#[test]
fn a_stop_waits_for_a_create_without_an_answer_whether_a_question_is_stored_or_not() {
    for failures in [0, 1] {
        let mut stage = creates_without_an_answer(Stage::preferred("2", |_| true));
        stage.fails(failures, ErrLockKind::Refused);
        stage.pass(10);
        assert_eq!(stage.calls.last(), Some(&Ask));
        a_stop_waits_for_the_create(&mut stage);
    }
}

#[test]
fn a_stop_waits_for_a_create_without_an_answer_after_a_later_swap_without_one() {
    let mut stage = creates_without_an_answer(Stage::new());
    stage.pass(10);
    stage.claim("", 7, 3, None); // the other candidate releases it
    stage.fails(9, ErrLockKind::Timeout);
    stage.pass(400);
    stage.answers.clear();
    assert!(stage.calls.iter().filter(|call| **call == Acquire).count() > 1, "{:?}", stage.calls);
    a_stop_waits_for_the_create(&mut stage);
}

#[test]
fn who_gives_way_releases_and_rests_for_a_period() {
    let mut stage = Stage::leading();
    stage.give_way();
    stage.pass(10);
    assert_eq!(stage.calls, [Release]);
    stage.pass(1_900);
    assert!(!stage.is_open());
    stage.pass(200);
    assert!(stage.is_open(), "no other candidate has come");
    assert!(!stage.calls.contains(&Renew) && stage.calls.contains(&Acquire));
}

#[test]
fn a_term_that_is_over_is_not_given_away() {
    let mut stage = Stage::leading();
    stage.machine.give_way(&crate::leadership::Term::new("another", 0));
    stage.pass(10);
    assert!(stage.is_open());
}

/// A layer keeps the answer to each claim. The process before this one has sent writes that may still land.
#[test]
fn s4_a_claim_whose_answer_is_withheld_is_given_back_and_not_claimed_again() {
    let mut stage = Stage::new();
    stage.now = stage.now.saturating_add(Duration::from_secs(100));
    stage.others = ("here", 20);
    stage.claim("me", 7, 3, None);
    stage.play(seconds(6), |stage, call| {
        let answer = stage.carry_out(call)?;
        if call.what == Acquire
            && let Some(claim) = &answer
        {
            stage.machine.give_way(&claim.term());
            return Err(error(ErrLockKind::Withheld));
        }
        Ok(answer)
    });
    assert!(!stage.is_open());
    assert_eq!(stage.calls.iter().filter(|call| **call == Acquire).count(), 1, "{:?}", stage.calls);
    assert!(stage.calls.contains(&Release) && stage.holder().is_empty());
}

/// A backup of etcd is restored, so the number of a term that was given away comes again.
#[test]
fn a_later_term_with_the_number_of_one_that_was_given_away_goes_on() {
    let mut stage = Stage::leading();
    let [term, _] = stage.terms();
    stage.give_way();
    stage.pass(100);
    assert!(stage.calls.contains(&Release) && !stage.is_open());
    stage.edit(|lease| lease["spec"]["leaseTransitions"] = serde_json::json!(term.transitions() - 1));
    stage.pass(seconds(5));
    assert_eq!(stage.terms()[0].transitions(), term.transitions());
    stage.pass(seconds(60));
    assert!(stage.is_open());
}
