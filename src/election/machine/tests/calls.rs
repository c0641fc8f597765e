//! When calls are made (rule S9), and that they never become a storm.

use super::examples::{Stage, error, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{self, Acquire, Read, Renew},
        lease_watch::WatchNews,
        machine::CLAIM,
    },
    leadership::Intent,
    lease::{ErrLock, ErrLockKind},
};
use http::StatusCode;
use serde_json::json;
use std::time::Duration;

#[test]
fn s9_three_attempts_fit_between_a_failed_renewal_and_the_deadline() {
    for kind in [ErrLockKind::Unreachable, ErrLockKind::Refused, ErrLockKind::Forbidden] {
        let mut stage = Stage::leading();
        stage.fails(4, kind);
        stage.pass(seconds(9));
        assert!(stage.is_open(), "{kind:?}");
    }
}

/// The same if each call hangs until its timeout.
#[test]
fn s9_three_hung_attempts_fit_too() {
    let mut stage = Stage::leading();
    let (deadline, mut attempts) = (stage.deadline(), 0);
    stage.play(seconds(9), |stage, call| {
        attempts += u32::from(call.what == Renew && stage.now < deadline);
        stage.now = stage.now.saturating_add(Duration::from_millis(1_600));
        Err(error(ErrLockKind::Timeout))
    });
    assert!(attempts >= 4, "{attempts}");
}

#[test]
fn retry_after_is_heeded_within_bounds() {
    let busy = |after| {
        let after = Some(Duration::from_secs(after));
        Err(ErrLock::refusal(StatusCode::TOO_MANY_REQUESTS, after, "too many requests"))
    };
    let mut follower = Stage::new();
    follower.answers.push_back(busy(3_600));
    follower.pass(1_900);
    assert_eq!(follower.calls, [Read]);
    follower.pass(200);
    assert!(follower.is_open(), "a period at most");
    let mut leader = Stage::leading();
    leader.answers.extend((0..3).map(|_| busy(3_600)));
    leader.pass(seconds(8));
    assert!(leader.is_open(), "a term is not given up for it");
}

/// What a person edits in a free lease says nothing of the API server. What another candidate writes does, but what the API
/// server has asked for is heeded all the same.
#[test]
fn news_of_others_alone_end_a_pause() {
    let busy = |after| Err(ErrLock::refusal(StatusCode::TOO_MANY_REQUESTS, after, "too many requests"));
    let failing = |after: Option<Duration>| {
        let mut stage = Stage::new();
        stage.client_go("other", 3);
        stage.pass(10);
        stage.client_go("", 3);
        stage.answers.extend((0..9).map(|_| busy(after)));
        stage.pass(1_500);
        stage.calls.clear();
        stage.answers.clear();
        stage
    };
    let label = |stage: &mut Stage| stage.edit(|lease| lease["metadata"]["labels"]["a"] = json!("b"));
    let touch = |stage: &mut Stage| {
        stage.edit(|lease| lease["spec"]["renewTime"] = json!("2030-01-01T00:00:00.000000Z"));
    };
    let others = |stage: &mut Stage| {
        stage.client_go("second", 4);
        stage.client_go("", 4);
    };
    let second = Some(Duration::from_secs(2));
    for (after, news, tries) in [
        (None, &label as &dyn Fn(&mut Stage), false),
        (None, &touch, false),
        (None, &others, true),
        (second, &others, false),
        (second, &label, false),
    ] {
        let mut stage = failing(after);
        news(&mut stage);
        stage.pass(1);
        assert_eq!(!stage.calls.is_empty(), tries, "{after:?}");
        stage.pass(seconds(3));
        assert!(stage.calls.contains(&Acquire), "{after:?}");
    }
}

/// A watch that begins anew asks for a read. A holder that may not read renews all the same.
#[test]
fn s9_a_holder_that_may_not_read_keeps_its_term() {
    let mut stage = Stage::leading();
    for _ in 0..10 {
        stage.machine.handle_watch(WatchNews::Up, stage.now);
        stage.play(seconds(3), |stage, call| match call.what {
            Read => Err(error(ErrLockKind::Forbidden)),
            _ => stage.carry_out(call),
        });
        assert!(stage.is_open());
    }
}

#[test]
fn who_watches_reads_only_if_no_news_come() {
    let mut stage = Stage::new();
    for _ in 0..20 {
        stage.client_go("other", 3);
        stage.pass(seconds(2));
    }
    assert_eq!(stage.calls, [], "not even as the watch begins");
    stage.pass(seconds(9));
    assert_eq!(stage.calls, [Read; 2]);
}

#[test]
fn who_polls_reads_once_a_period() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.machine.handle_watch(WatchNews::Down(None), stage.now);
    stage.pass(seconds(14));
    assert!((5..=7).contains(&stage.calls.len()), "{:?}", stage.calls);
}

/// A loser of a race waits for the watch to show the winner.
#[test]
fn a_lost_race_costs_no_read_if_the_watch_shows_the_winner() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(10);
    stage.calls.clear();
    stage.client_go("", 3);
    stage.fails(1, ErrLockKind::Conflict);
    stage.pass(10);
    stage.client_go("winner", 4);
    stage.pass(seconds(1));
    assert_eq!(stage.calls, [Acquire]);
}

/// What any answer for an hour costs: calls a minute.
#[test]
fn no_answer_makes_a_storm() {
    for kind in [
        ErrLockKind::Conflict,
        ErrLockKind::NotFound,
        ErrLockKind::Forbidden,
        ErrLockKind::Timeout,
        ErrLockKind::Refused,
        ErrLockKind::BadAnswer,
        ErrLockKind::Withheld,
    ] {
        for order in [Intent::Contend, Intent::Keep] {
            let mut stage = Stage::new();
            stage.order(order);
            stage.fails(10_000, kind);
            stage.pass(seconds(3_600));
            let most = 60 * 61;
            assert!(stage.calls.len() < most, "{kind:?} {order:?}: {} calls an hour", stage.calls.len());
        }
    }
}

#[test]
fn writes_that_fail_between_reads_that_work_make_no_storm() {
    for kind in [ErrLockKind::Conflict, ErrLockKind::Refused, ErrLockKind::Forbidden, ErrLockKind::Timeout] {
        let mut stage = Stage::new();
        stage.client_go("", 3);
        stage.play(seconds(600), |stage, call| match call.what {
            Read => Ok(stage.record()),
            _ => Err(error(kind)),
        });
        let calls = stage.calls.len();
        assert!(calls < 900, "{kind:?}: {calls} calls in ten minutes");
    }
}

/// A webhook changes each write. The candidate never leads, says so, and does not hammer.
#[test]
fn a_write_that_is_stored_otherwise_begins_no_term() {
    for strips in [true, false] {
        let mut stage = Stage::new();
        stage.play(seconds(600), |stage, call| {
            assert!(!stage.is_open());
            let answer = stage.carry_out(call);
            if call.update.is_none() || answer.is_err() {
                return answer;
            }
            let object = stage.lease.as_mut().unwrap();
            if strips {
                object["metadata"]["annotations"].as_object_mut().unwrap().remove(CLAIM);
            } else {
                object["spec"]["leaseDurationSeconds"] = json!(60);
            }
            Ok(stage.record())
        });
        let calls = stage.calls.len();
        assert!(calls < 900, "{calls} calls in ten minutes");
        let (_, trouble) = stage.machine.oddity().unwrap();
        let what = if strips { CLAIM } else { "the duration" };
        assert!(trouble.contains(what) && trouble.contains("webhook"), "{trouble}");
    }
}

/// A webhook was there once. Now the claim of another candidate stands as it was written, so nothing is wrong any more.
#[test]
fn a_sound_claim_of_another_ends_the_trouble_of_an_altered_one() {
    let mut stage = Stage::new();
    stage.play(200, |stage, call| {
        let answer = stage.carry_out(call);
        if call.update.is_some() {
            stage.lease.as_mut().unwrap()["spec"]["leaseDurationSeconds"] = json!(60);
        }
        answer.map(|_| stage.record())
    });
    assert!(stage.machine.oddity().is_some());
    stage.client_go("go", 7);
    assert!(stage.machine.oddity().is_some(), "it writes no claim");
    stage.claim("other", 9, 8, None);
    assert_eq!(stage.machine.oddity(), None);
}

#[test]
fn renewals_of_many_candidates_drift_apart() {
    let mut times = std::collections::BTreeSet::new();
    for process in 1..20 {
        let mut stage = Stage::of(process, None);
        stage.pass(seconds(1));
        stage.calls.clear();
        let mut millis = 0;
        while stage.calls.is_empty() {
            stage.pass(10);
            millis += 10;
        }
        assert_eq!(stage.calls, [LeaseCall::Renew]);
        times.insert(millis);
    }
    assert!(times.len() > 5, "{times:?}");
}
