//! Leases that are given back late, or not at all.

use super::examples::{Stage, error, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Acquire, Ask, Read, Release},
        lease_watch::WatchNews,
        machine::{ASKED, Gate},
        priority::HOLDER_KEY,
    },
    leadership::Intent,
    lease::{ErrLockKind, LeaseTiming},
};
use serde_json::json;
use std::time::Duration;

/// A policy refuses each release (an empty holder, or a duration below 5 s). The only replica gives way once. S4: a lease that
/// cannot be released is left to expire. Then each candidate may take it.
#[test]
fn refused_release_ends_with_the_lease() {
    let mut stage = Stage::leading();
    stage.give_way();
    stage.play(seconds(120), |stage, call| match call.what {
        Release => Err(error(ErrLockKind::Refused)),
        _ => stage.carry_out(call),
    });
    assert!(stage.is_open(), "{} calls, the last: {:?}", stage.calls.len(), stage.calls.last());
}

/// An order to end an earlier term comes late, while the present one is closing.
#[test]
fn late_order_to_end_an_earlier_term_reopens_nothing() {
    let mut stage = Stage::leading();
    let [_, earlier] = stage.terms();
    stage.busy.writes = true;
    stage.give_way();
    assert!(matches!(stage.gate(), Gate::Closing { .. }));
    stage.machine.give_way(&earlier);
    assert!(matches!(stage.gate(), Gate::Closing { .. }), "{:?}", stage.gate());
}

/// A question without an answer gives this candidate nothing, so its stop has nothing to wait for.
#[test]
fn stop_waits_for_no_question() {
    let mut stage = Stage::preferred("2", |_| true);
    stage.claim("other", 7, 3, None);
    stage.play(100, |stage, call| match call.what {
        Ask => Err(error(ErrLockKind::Timeout)),
        _ => stage.carry_out(call),
    });
    assert!(stage.calls.contains(&Ask));
    stage.order(Intent::Leave);
    stage.pass(seconds(1));
    assert_eq!(stage.done, Some(Ok(())), "{:?}", stage.calls);
}

/// Calls hang, and the watch shows that another one leads. A follower in doubt stops.
#[test]
fn stop_ends_without_calls_although_the_watch_works() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.order(Intent::Leave);
    for _ in 0..60 {
        if stage.done.is_some() {
            break;
        }
        stage.client_go("other", 3);
        stage.play(seconds(2), |stage, _| {
            stage.now = stage.now.saturating_add(Duration::from_millis(1_600));
            Err(error(ErrLockKind::Timeout))
        });
    }
    assert!(stage.done.is_some(), "{} calls", stage.calls.len());
}

/// The release of one that gives way lands, and its answer is lost.
#[test]
fn candidate_that_gives_way_rests_although_the_answer_is_lost() {
    let mut stage = Stage::leading();
    stage.give_way();
    let mut once = true;
    stage.play(1_900, |stage, call| {
        let answer = stage.carry_out(call);
        if call.what == Release && std::mem::take(&mut once) {
            return Err(error(ErrLockKind::Timeout));
        }
        answer
    });
    assert!(!stage.is_open(), "{:?}", stage.calls);
}

/// The work of a term takes 3 s to end, however the term is given away.
#[test]
fn s11_work_keeps_the_lease_until_it_has_ended() {
    for told in 0..3 {
        let mut stage = Stage::preferred("2", |key| key != "3");
        stage.pass(100);
        stage.order(Intent::Keep);
        match told {
            0 => stage.give_way(),
            1 => stage.annotate(ASKED, "other\n3"),
            _ => stage.annotate(ASKED, "other"),
        }
        stage.pass(seconds(3));
        assert!(!stage.calls.contains(&Release) && stage.holder() == "me", "{told}");
        stage.order(Intent::Contend);
        stage.pass(10);
        assert!(stage.calls.contains(&Release) && stage.holder().is_empty(), "{told}");
    }
}

/// After leading-only work has ended, the process stands down, and contends again at once.
#[test]
fn reason_of_the_term_says_how_its_candidate_rests() {
    for (question, rests, asks) in
        [(None, true, false), (Some("other"), true, false), (Some("other\n3"), true, true)]
    {
        let mut stage = Stage::preferred("2", |key| key != "3");
        stage.pass(100);
        stage.order(Intent::Keep);
        match question {
            None => stage.give_way(),
            Some(text) => stage.annotate(ASKED, text),
        }
        stage.order(Intent::Leave);
        stage.pass(10);
        assert!(stage.done == Some(Ok(())) && stage.holder().is_empty());
        stage.order(Intent::Contend);
        stage.edit(|lease| drop(lease["metadata"]["annotations"].as_object_mut().unwrap().remove(ASKED)));
        stage.calls.clear();
        stage.pass(1_900);
        assert_eq!(!stage.calls.contains(&Acquire), rests, "{question:?}");
        stage.claim("other", 7, 3, None);
        stage.annotate(HOLDER_KEY, "1");
        stage.pass(seconds(2));
        assert_eq!(stage.calls.contains(&Ask), asks, "{question:?}");
        stage.claim("other", 7, 3, None);
        stage.pass(seconds(13));
        assert!(stage.calls.contains(&Ask), "{question:?}: a lease duration later");
    }
}

/// A lock layer gives way during the call of a claim: after the server has carried the claim out, and before the answer.
#[test]
fn order_during_a_claim_is_meant_for_its_term() {
    let mut stage = Stage::new();
    let _ = stage.call();
    let _ = stage.machine.handle_answer(Ok(stage.record()), stage.now);
    stage.now = stage.now.saturating_add(Duration::from_millis(5));
    let call = stage.call();
    let answer = stage.carry_out(&call);
    stage.machine.give_way(&stage.record().unwrap().term());
    stage.machine.handle_answer(answer, stage.now).unwrap();
    assert!(matches!(stage.gate(), Gate::Closing { .. }), "{:?}", stage.gate());
    stage.pass(10);
    assert!(stage.holder().is_empty());
}

/// A watch has begun anew, and reads fail. A release is a swap, so it needs no read.
#[test]
fn s4_stop_in_doubt_releases_without_a_read() {
    for timing in [LeaseTiming::default(), LeaseTiming::fast()] {
        let mut stage = Stage::timed(timing);
        stage.pass(100);
        stage.machine.handle_watch(WatchNews::Up, stage.now);
        stage.order(Intent::Leave);
        stage.play(seconds(10), |stage, call| match call.what {
            Read => Err(error(ErrLockKind::Forbidden)),
            _ => stage.carry_out(call),
        });
        assert!(stage.done == Some(Ok(())) && stage.holder().is_empty(), "{:?}", stage.calls);
    }
}

/// A webhook caps the duration from below, so the lease is not in the form of a release.
#[test]
fn stop_whose_release_is_stored_otherwise_says_so() {
    let mut stage = Stage::leading();
    stage.order(Intent::Leave);
    stage.play(seconds(10), |stage, call| {
        stage.carry_out(call)?;
        if call.what == Release {
            stage.lease.as_mut().unwrap()["spec"]["leaseDurationSeconds"] = json!(5);
        }
        Ok(stage.record())
    });
    assert!(stage.done.unwrap().unwrap_err().contains("another form than a release"));
}
