//! Leases that are given back late, or not at all.

use super::examples::{Stage, error, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Ask, Release},
        machine::{Gate, Order},
    },
    leadership::Term,
    lease::ErrLockKind,
};
use std::time::Duration;

/// A policy refuses each release (an empty holder, or a duration below 5 s). The only replica gives way once. S4: a lease that
/// cannot be released is left to expire. Then each candidate may take it.
#[test]
fn refused_release_ends_with_the_lease() {
    let mut stage = Stage::leading();
    let Gate::Open { term, .. } = stage.gate() else { panic!() };
    stage.machine.give_way(&Term::new(term.lease_uid(), term.transitions()));
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
    let Gate::Open { term, .. } = stage.gate() else { panic!() };
    stage.writes.under_way = true;
    stage.machine.give_way(&Term::new(term.lease_uid(), term.transitions()));
    assert!(matches!(stage.gate(), Gate::Closing { .. }));
    stage.machine.give_way(&Term::new(term.lease_uid(), term.transitions() - 1));
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
    stage.order(Order::Stop);
    stage.pass(seconds(1));
    assert_eq!(stage.done, Some(Ok(())), "{:?}", stage.calls);
}

/// Calls hang, and the watch shows that another one leads. A follower in doubt stops.
#[test]
fn stop_ends_without_calls_although_the_watch_works() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.order(Order::Stop);
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
    let Gate::Open { term, .. } = stage.gate() else { panic!() };
    stage.machine.give_way(&Term::new(term.lease_uid(), term.transitions()));
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
