//! Answers that come after news, and what could make a storm of calls.

use super::{
    examples::{Stage, error, seconds},
    odd_looks::no_watch,
};
use crate::{
    election::hooks::LeaseCall::{Acquire, Read, Renew},
    lease::ErrLockKind,
};
use serde_json::json;
use std::time::Duration;

/// A preferred candidate asks, and each question meets a conflict, while its reads work: they come from a cache that lags (an
/// edge cache, a proxy), or a webhook denies with 409. A read that works forgets no failures then.
#[test]
fn questions_that_meet_conflicts_make_no_storm() {
    let mut stage = Stage::preferred("2", |_| true);
    stage.claim("other", 7, 3, None);
    let mut calls = 0;
    stage.play(seconds(2), |stage, call| {
        calls += 1;
        assert!(calls < 100, "100 calls in {:?}, no end: {:?}", stage.now, &stage.calls[95..]);
        stage.now = stage.now.saturating_add(Duration::from_millis(2));
        if call.what == Read { Ok(stage.record()) } else { Err(error(ErrLockKind::Conflict)) }
    });
}

/// The same once the question stands in the lease of client-go, which is taken then.
#[test]
fn acquisitions_that_meet_conflicts_make_no_storm() {
    let mut stage = Stage::preferred("2", |_| true);
    stage.client_go("go", 3);
    no_watch(&mut stage);
    let mut calls = 0;
    stage.play(seconds(2), |stage, call| {
        calls += 1;
        assert!(calls < 100, "100 calls, no end: {:?}", &stage.calls[95..]);
        stage.now = stage.now.saturating_add(Duration::from_millis(2));
        if call.what == Acquire { Err(error(ErrLockKind::Conflict)) } else { stage.carry_out(call) }
    });
}

/// Lets so many milliseconds pass. Each answer takes `delay` ms. `change` comes after each write that is carried out, and the
/// watch shows it before the answer.
fn overtaken(stage: &mut Stage, millis: u64, delay: u64, mut change: impl FnMut(&mut Stage)) {
    stage.play(millis, |stage, call| {
        stage.now = stage.now.saturating_add(Duration::from_millis(delay));
        let answer = stage.carry_out(call);
        if call.update.is_some() && answer.is_ok() {
            change(stage);
        }
        answer
    });
}

/// A controller next to the API server reverts each write, and the watch shows that before the answer to the write comes.
#[test]
fn reverts_that_are_faster_than_answers_make_no_storm() {
    let mut stage = Stage::new();
    overtaken(&mut stage, seconds(10), 2, Stage::delete);
    let calls = stage.calls.len();
    assert!(calls < 100, "{calls} calls in ten seconds");
}

/// Another program edits the lease after each claim, and the watch shows that before the answer comes.
#[test]
fn claim_counts_although_a_later_edit_is_seen_first() {
    let mut stage = Stage::new();
    overtaken(&mut stage, seconds(10), 2, |stage| {
        stage.edit(|lease| lease["metadata"]["labels"] = json!({ "n": "1" }));
    });
    let calls = stage.calls.len();
    assert!(calls < 100 && stage.is_open(), "{calls} calls in ten seconds, open: {}", stage.is_open());
}

/// The same after each renewal. Each one succeeds, and the lease never names another holder.
#[test]
fn s9_renewals_count_although_later_edits_are_seen_first() {
    let mut stage = Stage::leading();
    let (mut n, mut shut) = (0, false);
    for _ in 0..30 {
        overtaken(&mut stage, seconds(1), 20, |stage| {
            n += 1;
            assert!(n < 2_000, "a storm");
            stage.edit(|lease| lease["metadata"]["labels"] = json!({ "n": n.to_string() }));
        });
        shut |= !stage.is_open();
    }
    assert!(!shut && stage.calls.len() < 100, "shut: {shut}, {} calls in 30 s", stage.calls.len());
}

/// The same with an edit of the duration after each renewal, which makes the lease last longer.
#[test]
fn s9_renewals_count_although_a_longer_duration_is_seen_first() {
    let mut stage = Stage::leading();
    let mut shut = false;
    for _ in 0..30 {
        overtaken(&mut stage, seconds(1), 20, |stage| {
            stage.edit(|lease| lease["spec"]["leaseDurationSeconds"] = json!(60));
        });
        shut |= !stage.is_open();
    }
    assert!(!shut && stage.calls.len() < 100, "shut: {shut}, {} calls in 30 s", stage.calls.len());
}

/// A controller reverts each renewal to the claim before it, and the watch shows that before the answer comes. Other candidates may
/// never have seen such a renewal, so the deadline stays where it is, and the renewals make no storm.
#[test]
fn s1_renewals_that_are_reverted_count_for_nothing() {
    let mut stage = Stage::leading();
    stage.pass(seconds(3));
    stage.calls.clear();
    let (old, deadline) = (stage.lease.clone().unwrap(), stage.deadline());
    overtaken(&mut stage, seconds(5), 2, |stage| stage.put(old.clone()));
    assert_eq!(stage.deadline(), deadline);
    assert!(stage.calls.contains(&Renew) && stage.calls.len() < 30, "{} calls in 5 s", stage.calls.len());
}

/// A crowd that has lost a race waits until a holder that has died can write no more. To lose the race to create the lease
/// does not count: all begin at once only then.
#[test]
fn crowd_that_has_lost_a_race_does_not_write_at_one_moment() {
    assert_eq!(moments_of_a_crowd(|stage| stage.client_go("other", 3)), 1);
    // The watch is faster than the answer.
    let lost = |stage: &mut Stage| {
        stage.play(seconds(2), |stage, call| {
            let is_free = stage.record().is_none_or(|record| record.holder().is_none());
            if call.what == Acquire && is_free {
                stage.client_go("other", 3);
            }
            stage.carry_out(call)
        });
    };
    let created = |stage: &mut Stage| {
        stage.lease = None;
        lost(stage);
    };
    assert_eq!(moments_of_a_crowd(created), 1);
    let moments = moments_of_a_crowd(lost);
    assert!(moments > 20, "{moments} moments of 39 candidates");
}

/// When each of 39 candidates writes first, after a life with this beginning.
fn moments_of_a_crowd(begin: impl Fn(&mut Stage)) -> usize {
    let mut times = vec![];
    for process in 1..40 {
        let mut stage = Stage::of(process, None);
        begin(&mut stage);
        stage.pass(10);
        stage.calls.clear();
        let mut micros = 0_u64;
        stage.play(seconds(16), |stage, call| {
            if call.what == Acquire && micros == 0 {
                micros = stage.now.as_nanos() / 1_000;
            }
            stage.carry_out(call)
        });
        times.push(micros);
    }
    times.sort_unstable();
    times.dedup();
    times.len()
}
