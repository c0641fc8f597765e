//! What a candidate makes of answers, of failures and of the silence of its watch.

use super::{
    api_health::ApiHealth,
    examples::{at, held},
};
use crate::{
    election::hooks::LeaseCall,
    lease::{ErrLockKind, LeaseTiming},
};
use std::time::Duration;

fn health() -> ApiHealth {
    ApiHealth::new(LeaseTiming::fast())
}

/// Calls that failed, the last one at 10 s.
fn failed(times: usize) -> ApiHealth {
    let mut health = health();
    for _ in 0..times {
        health.fail(ErrLockKind::Timeout, false, at(10));
    }
    health
}

#[test]
fn the_renewal_after_a_gain_or_a_failure_comes_early_and_the_next_one_does_not() {
    for (mut health, call, recovered) in
        [(health(), LeaseCall::Acquire, false), (failed(1), LeaseCall::Renew, true)]
    {
        assert_eq!(health.is_failing(), recovered);
        health.recover(call, at(11));
        assert_eq!(health.wants_another_watch(at(11)), recovered, "the watch may work again too");
        assert!(health.early > Duration::ZERO && health.early < Duration::from_secs(1));
        health.recover(LeaseCall::Read, at(11));
        assert!(health.early > Duration::ZERO);
        health.recover(LeaseCall::Renew, at(12));
        assert!(!health.wants_another_watch(at(12)));
        assert_eq!(health.early, Duration::ZERO);
    }
}

#[test]
fn a_failed_call_leaves_doubt_until_the_next_one_begins() {
    let mut health = failed(1);
    assert!(health.is_in_doubt());
    health.begin(at(11));
    assert!(!health.is_in_doubt());
}

/// A watch that begins shows that an outage is over. One lost call is no outage.
#[test]
fn a_watch_that_begins_ends_the_pause_of_an_outage() {
    for (failures, at_once) in [(1, false), (2, true), (3, true)] {
        let mut health = failed(failures);
        health.watch_begins(at(10));
        assert_eq!(health.not_before == at(10), at_once, "{failures}");
    }
}

#[test]
fn a_watch_is_silent_if_it_does_not_show_what_an_answer_showed() {
    let is_silent = |health: &ApiHealth, known, now| {
        let mut health = health.clone();
        health.look_at_the_watch(Some(known), at(now));
        health.wants_another_watch(at(now))
    };
    let mut health = health();
    assert!(!is_silent(&health, 7, 60), "there is no watch");
    health.watch_begins(at(10));
    assert!(!is_silent(&health, 7, 10), "the answer was faster");
    assert!(is_silent(&health, 7, 11));
    health.watch_tells(&held(7, "other", 0), at(20));
    assert!(!is_silent(&health, 7, 60), "it has shown it");
    assert!(is_silent(&health, 8, 60));
}

/// It says so once, and the lease is polled until the next watch begins.
#[test]
fn a_silent_watch_ends() {
    let mut health = health();
    health.watch_begins(at(10));
    health.look_at_the_watch(Some(7), at(11));
    assert!(health.wants_another_watch(at(11)) && !health.is_watching());
    assert!(!health.wants_another_watch(at(11)));
}

/// The watch shows what was on its way before the race.
#[test]
fn old_news_do_not_show_who_won_a_race() {
    let mut health = health();
    health.watch_begins(at(10));
    health.watch_tells(&held(7, "other", 0), at(10));
    health.begin(at(11));
    health.lose_a_race(at(11));
    health.watch_tells(&held(6, "other", 0), at(11));
    assert!(health.not_before > at(11), "it waits for the winner");
    health.watch_tells(&held(8, "winner", 0), at(11));
    assert!(health.not_before == at(11) && !health.is_failing());
}
