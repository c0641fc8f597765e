//! Tests of the next decision.

use super::{
    Machine, Next, Order, View,
    examples::{at, held, leading, machine, next, preempted, with_term, without_term, written},
};
use crate::{
    election::hooks::LeaseCall,
    lease::{ErrLockKind, LeaseRecord},
};

const GIVE_UP: Order = Order::GiveUp { failed: 0 };

/// A candidate that led from 0 s until its term expired with an unanswered write. Its claim of 100 s takes effect
/// without an answer.
fn lands_late() -> (Machine, LeaseRecord, View) {
    let mut machine = leading();
    machine.health.begin(at(100));
    let second = machine.acquisition(at(100), "second".into());
    let second = written(3, &second);
    let view = View { settles_at: at(16), ..without_term(101) };
    (machine, second, view)
}

#[test]
fn a_late_claim_after_expiry_is_released() {
    let (mut machine, second, view) = lands_late();
    machine.observe(second, at(101));
    assert_eq!(next(&machine, Order::StayAway, &view), Next::Call(LeaseCall::Release));
}

#[test]
fn a_late_preempted_claim_is_acknowledged() {
    let (mut machine, second, view) = lands_late();
    machine.observe(second.clone(), at(101));
    machine.observe(preempted(&second, 4), at(101));
    assert!(machine.own.owes_an_acknowledgement());
    for order in [Order::Contend, Order::StayAway, GIVE_UP] {
        assert_eq!(next(&machine, order, &view), Next::Call(LeaseCall::Acknowledge), "{order:?}");
    }
}

/// Its writes were just cut off, but have not been dropped yet.
#[test]
fn s4_a_stopping_preempted_candidate_waits_for_its_writes() {
    let mut machine = leading();
    let own = machine.record().unwrap().clone();
    machine.observe(preempted(&own, 3), at(1));
    assert!(machine.own.owes_an_acknowledgement());
    let view = View { settles_at: at(6), ..without_term(1) };
    assert_eq!(next(&machine, GIVE_UP, &view), Next::Wait(at(6)));
    assert_eq!(
        next(&machine, GIVE_UP, &View { now: at(6), ..view.clone() }),
        Next::Call(LeaseCall::Acknowledge)
    );
}

/// A write of the earlier process may still take effect.
#[test]
fn s4_a_lease_from_before_a_restart_is_released_late() {
    let mut machine = machine();
    let before = held(1, "me", 0);
    machine.observe(before.clone(), at(0));
    let claim = machine.acquisition(at(1), "now".into());
    machine.claims.settle_last();
    let own = before.with(&claim);
    let mut own = own.into_json();
    own["metadata"]["resourceVersion"] = "2".into();
    let own = LeaseRecord::from_json(own).unwrap();
    machine.observe(own.clone(), at(1));
    machine.opened();
    let view = without_term(1);
    assert_eq!(next(&machine, GIVE_UP, &view), Next::Wait(at(5)));
    assert_eq!(next(&machine, GIVE_UP, &View { now: at(5), ..view.clone() }), Next::Call(LeaseCall::Release));
    machine.observe(preempted(&own, 3), at(2));
    assert_eq!(next(&machine, GIVE_UP, &View { now: at(2), ..view.clone() }), Next::Wait(at(5)));
}

/// This process has not taken over yet what its predecessor held, so it may not release it.
#[test]
fn s5_a_lease_of_an_earlier_process_is_left() {
    let mut machine = machine();
    machine.observe(held(1, "me", 0), at(0));
    let view = without_term(1);
    assert!(matches!(next(&machine, GIVE_UP, &view), Next::GivenUp(Err(_))), "it is not released");
    assert!(matches!(next(&machine, Order::StayAway, &view), Next::Wait(_)), "and needs no call");
    machine.observe(held(2, "other", 0), at(2));
    assert_eq!(next(&machine, GIVE_UP, &view), Next::GivenUp(Ok(())));
}

/// The claim can take effect only on the version that it swaps.
#[test]
fn a_claim_on_an_old_version_delays_no_stop() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    machine.acquisition(at(0), "now".into());
    let view = without_term(1);
    assert!(matches!(next(&machine, GIVE_UP, &view), Next::GivenUp(Err(_))));
    machine.observe(held(2, "other", 0), at(1));
    assert_eq!(next(&machine, GIVE_UP, &view), Next::GivenUp(Ok(())));
}

/// Rule S5: the version that the renewal would swap is known to be old.
#[test]
fn s5_a_conflict_is_followed_by_a_read() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let claim = machine.acquisition(at(0), "now".into());
    let own = written(2, &claim);
    machine.observe(own.clone(), at(0));
    machine.opened();
    let view = with_term(&machine, 3);
    assert_eq!(next(&machine, Order::Contend, &view), Next::Call(LeaseCall::Renew));
    machine.health.fail(ErrLockKind::Conflict, true, at(3));
    assert_eq!(next(&machine, Order::Contend, &view), Next::Call(LeaseCall::Read));
}
