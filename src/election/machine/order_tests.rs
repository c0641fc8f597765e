//! Which call is next: what goes first if more than one thing is to be done.

use super::{
    Decision, Next, Order, Output, View,
    examples::{at, held, leading, machine, next, with_term, without_term},
};
use crate::{
    election::hooks::LeaseCall,
    lease::{ErrLock, ErrLockKind},
};
use std::time::Duration;

/// The renewal shows as much as a read, and only the renewal moves the deadline.
#[test]
fn s9_a_leader_in_doubt_reads_until_its_renewal_is_due() {
    let mut leader = leading();
    leader.health.watch_begins(at(0));
    assert_eq!(next(&leader, Order::Contend, &with_term(&leader, 1)), Next::Call(LeaseCall::Read));
    assert_eq!(next(&leader, Order::Contend, &with_term(&leader, 2)), Next::Call(LeaseCall::Renew));
}

#[test]
fn a_release_does_not_wait_for_the_pause_of_an_earlier_failure() {
    let mut leader = leading();
    for _ in 0..3 {
        leader.health.fail(ErrLockKind::Timeout, true, at(5));
    }
    let order = Order::GiveUp { failed: 0 };
    leader.order(order);
    assert_eq!(next(&leader, order, &with_term(&leader, 5)), Next::Call(LeaseCall::Read));
    leader.health.fail(ErrLockKind::Timeout, true, at(5));
    leader.order(order);
    let waits = next(&leader, order, &with_term(&leader, 5));
    assert!(matches!(waits, Next::Wait(until) if until > at(5)), "it failed since the order");
}

/// The API server may answer each release with a conflict.
#[test]
fn a_release_that_always_conflicts_is_given_up() {
    let mut leader = leading();
    leader.order(Order::GiveUp { failed: 0 });
    let (mut view, mut releases) = (with_term(&leader, 1), 0);
    let given_up = loop {
        assert!(releases < 10, "it has no end");
        match leader.poll(&view, String::new) {
            Output::Call(call) if call.what == LeaseCall::Read => {
                leader.answered(Ok(call.seen), true, view.now);
            }
            Output::Call(_) => {
                releases += 1;
                leader.answered(Err(ErrLock::new(ErrLockKind::Conflict, "no")), true, view.now);
            }
            Output::Wait(until) => view.now = until,
            Output::GivenUp(outcome) => break outcome,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((releases, given_up.is_err()), (6, true));
}

/// Only a candidate that took over from a holder without an orderly end waits for that holder's writes.
#[test]
fn s4_a_term_without_writes_is_released_at_once() {
    let leader = leading();
    let view = with_term(&leader, 1);
    assert_eq!(next(&leader, Order::GiveUp { failed: 0 }, &view), Next::Call(LeaseCall::Release));
}

/// If a write may take effect until the lease runs out, the lease runs out.
#[test]
fn s4_a_lease_that_ends_before_its_writes_is_not_touched_again() {
    let leader = leading();
    let away = |settles_at| {
        let view = View { settles_at: at(settles_at), ..without_term(settles_at) };
        next(&leader, Order::StayAway, &view)
    };
    assert_eq!(away(14), Next::Call(LeaseCall::Release));
    assert_eq!(away(15), Next::Wait(at(17)));
}

/// It hears of the deletion twice.
#[test]
fn its_own_deleted_lease_is_free_at_once() {
    let mut leader = leading();
    for _ in 0..2 {
        leader.observe_absence(None, at(1));
        let (decision, from) = leader.entry(at(1));
        assert_eq!(decision, Decision::Take);
        assert!(from <= at(1).saturating_add(Duration::from_millis(2)), "it waits for no chance");
    }
}

/// A follower that watches trusts its watch for two retry periods.
#[test]
fn a_follower_without_a_watch_looks_sooner() {
    let next_look = |watches: bool| {
        let mut follower = machine();
        if watches {
            follower.health.watch_begins(at(0));
        }
        follower.health.begin(at(0));
        follower.observe(held(1, "other", 0), at(0));
        match next(&follower, Order::Contend, &without_term(0)) {
            Next::Wait(until) => until,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(next_look(true), at(4));
    assert!(next_look(false) < at(4) && next_look(false) >= at(2));
}

/// Its drain is over, and the write that it cut off may still land. A wait that has ended already would be no wait.
#[test]
fn a_candidate_that_has_given_way_waits_for_what_is_next() {
    let mut leader = leading();
    leader.give_way(at(1));
    leader.health.begin(at(1));
    leader.claims.stood(at(6));
    let waits = |now| {
        let view = View { settles_at: at(11), ..without_term(now) };
        leader.clone().poll(&view, || unreachable!("nothing is written"))
    };
    let Output::Wait(until) = waits(7) else { panic!("{:?}", waits(7)) };
    assert!(until > at(7), "{until:?}");
}
