//! Tests of the next decision, with examples and with random steps.

use super::{
    Candidacy, Decision, Inputs, Next, Task,
    examples::{at, candidacy, held, leading, written},
    next_world::{NEVER, World, preempted},
};
use crate::{
    election::hooks::LeaseCall,
    lease::{ErrLockKind, LeaseRecord},
};
use proptest::prelude::*;
use std::time::Duration;

fn follower(task: Task, now: u64) -> Inputs {
    Inputs { now: at(now), task, leads: false, settles_at: NEVER }
}

/// A candidate that led from 0 s until its term expired with an unanswered write. Its claim of 100 s takes effect
/// without an answer.
fn lands_late() -> (Candidacy, LeaseRecord, Inputs) {
    let mut candidacy = leading();
    candidacy.contact.begin(at(100));
    let second = candidacy.acquisition(at(100), "second".into());
    let second = written(3, &second);
    let inputs = Inputs { settles_at: at(16), ..follower(Task::StayAway, 101) };
    (candidacy, second, inputs)
}

#[test]
fn a_late_claim_after_expiry_is_released() {
    let (mut candidacy, second, inputs) = lands_late();
    candidacy.observe(second, at(101));
    assert_eq!(candidacy.next(&inputs), Next::Call(LeaseCall::Release));
}

#[test]
fn a_late_preempted_claim_is_acknowledged() {
    let (mut candidacy, second, inputs) = lands_late();
    candidacy.observe(second.clone(), at(101));
    candidacy.observe(preempted(&second, 4), at(101));
    assert!(candidacy.own.owes_an_acknowledgement());
    for task in [Task::Contend, Task::StayAway, Task::GiveUp { failed: 0 }] {
        let inputs = Inputs { task, ..inputs };
        assert_eq!(candidacy.next(&inputs), Next::Call(LeaseCall::Acknowledge), "{task:?}");
    }
}

/// Its writes were just cut off, but have not been dropped yet.
#[test]
fn s4_a_stopping_preempted_candidate_waits_for_its_writes() {
    let mut candidacy = leading();
    let own = candidacy.record().unwrap().clone();
    candidacy.observe(preempted(&own, 3), at(1));
    assert!(candidacy.own.owes_an_acknowledgement());
    let inputs = Inputs { settles_at: at(6), ..follower(Task::GiveUp { failed: 0 }, 1) };
    assert_eq!(candidacy.next(&inputs), Next::Wait(at(6)));
    assert_eq!(candidacy.next(&Inputs { now: at(6), ..inputs }), Next::Call(LeaseCall::Acknowledge));
}

/// A write of the earlier process may still take effect.
#[test]
fn s4_a_lease_from_before_a_restart_is_released_late() {
    let mut candidacy = candidacy();
    let before = held(1, "me", 0);
    candidacy.observe(before.clone(), at(0));
    let claim = candidacy.acquisition(at(1), "now".into());
    candidacy.claim_is_settled();
    let own = before.with(&claim);
    let mut own = own.into_json();
    own["metadata"]["resourceVersion"] = "2".into();
    let own = LeaseRecord::from_json(own).unwrap();
    candidacy.observe(own.clone(), at(1));
    candidacy.opened(own.term());
    let inputs = follower(Task::GiveUp { failed: 0 }, 1);
    assert_eq!(candidacy.next(&inputs), Next::Wait(at(5)));
    assert_eq!(candidacy.next(&Inputs { now: at(5), ..inputs }), Next::Call(LeaseCall::Release));
    candidacy.observe(preempted(&own, 3), at(2));
    assert_eq!(candidacy.next(&Inputs { now: at(2), ..inputs }), Next::Wait(at(5)));
}

/// This process has not taken over yet what its predecessor held, so it may not release it.
#[test]
fn s5_a_lease_of_an_earlier_process_is_left() {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "me", 0), at(0));
    let inputs = follower(Task::GiveUp { failed: 0 }, 1);
    assert!(matches!(candidacy.next(&inputs), Next::GivenUp(Err(_))), "it is not released");
    let away = follower(Task::StayAway, 1);
    assert!(matches!(candidacy.next(&away), Next::Wait(_)), "and needs no call");
    candidacy.observe(held(2, "other", 0), at(2));
    assert_eq!(candidacy.next(&inputs), Next::GivenUp(Ok(())));
}

/// The claim can take effect only on the version that it swaps.
#[test]
fn a_claim_on_an_old_version_delays_no_stop() {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "", 0), at(0));
    candidacy.acquisition(at(0), "now".into());
    let inputs = follower(Task::GiveUp { failed: 0 }, 1);
    assert!(matches!(candidacy.next(&inputs), Next::GivenUp(Err(_))));
    candidacy.observe(held(2, "other", 0), at(1));
    assert_eq!(candidacy.next(&inputs), Next::GivenUp(Ok(())));
}

/// Rule S5: the version that the renewal would swap is known to be old.
#[test]
fn s5_a_conflict_is_followed_by_a_read() {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "", 0), at(0));
    let claim = candidacy.acquisition(at(0), "now".into());
    let own = written(2, &claim);
    candidacy.observe(own.clone(), at(0));
    candidacy.opened(own.term());
    let inputs = Inputs { leads: true, ..follower(Task::Contend, 3) };
    assert_eq!(candidacy.next(&inputs), Next::Call(LeaseCall::Renew));
    candidacy.contact.fail(ErrLockKind::Conflict, true, at(3));
    assert_eq!(candidacy.next(&inputs), Next::Call(LeaseCall::Read));
}

/// A candidate that asks before its gate opens, holds the lease since 0 s.
fn asking() -> (Candidacy, LeaseRecord) {
    let mut candidacy = candidacy().asks_before_opening();
    candidacy.observe(held(1, "", 0), at(0));
    let claim = candidacy.acquisition(at(0), "now".into());
    candidacy.claim_is_settled();
    let own = written(2, &claim);
    candidacy.observe(own.clone(), at(0));
    assert!(candidacy.awaits_opening() && candidacy.is_held_back(at(0)));
    (candidacy, own)
}

/// It renews until then, and opens with a renewal, so the deadline counts from a write that has confirmed the claim.
#[test]
fn s1_an_agreed_term_opens_with_a_renewal() {
    let (mut candidacy, own) = asking();
    assert_eq!(candidacy.next(&follower(Task::Contend, 1)), Next::Wait(at(2)));
    assert_eq!(candidacy.next(&follower(Task::Contend, 2)), Next::Call(LeaseCall::Renew));
    candidacy.opening.agree();
    assert!(!candidacy.is_held_back(at(1)));
    assert_eq!(candidacy.next(&follower(Task::Contend, 1)), Next::Call(LeaseCall::Renew));
    candidacy.opened(own.term());
    // The term expires, and a new one asks anew.
    assert_eq!(candidacy.decide(at(11), false), Decision::Take);
    candidacy.acquisition(at(11), "later".into());
    candidacy.opening.agree();
    candidacy.acquisition(at(12), "again".into());
    assert!(candidacy.opening.awaited().is_some());
}

/// Another candidate may be able to write.
#[test]
fn a_candidate_that_may_not_open_releases_and_rests() {
    let (mut candidacy, own) = asking();
    candidacy.stood(at(9));
    assert_eq!(candidacy.next(&follower(Task::Contend, 10)), Next::Call(LeaseCall::Release));
    let unsettled = Inputs { settles_at: at(13), ..follower(Task::Contend, 10) };
    assert_eq!(candidacy.next(&unsettled), Next::Wait(at(11)), "it renews while a write may land");
    let claim = candidacy.release(at(10), "later".into());
    let mut released = own.with(&claim).into_json();
    released["metadata"]["resourceVersion"] = "3".into();
    candidacy.observe(LeaseRecord::from_json(released).unwrap(), at(10));
    assert_eq!(candidacy.decide(at(10), false), Decision::WaitUntil(at(12)));
    assert_eq!(candidacy.decide(at(12), false), Decision::Take);
}

/// Only a term that could not open makes it rest.
#[test]
fn a_candidate_that_lost_a_race_takes_the_lease_when_it_is_free() {
    let mut candidacy = candidacy().asks_before_opening();
    candidacy.observe(held(1, "", 0), at(0));
    candidacy.acquisition(at(0), "now".into());
    candidacy.observe(held(2, "other", 0), at(0));
    candidacy.observe(held(3, "", 10), at(10));
    assert_eq!(candidacy.decide(at(10), false), Decision::Take);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// A wait never ends before it begins. The candidate releases nothing too early and nothing that belongs to
    /// another candidate. It acquires nothing without an order. If the API server answers, the candidate leads in the
    /// end, or waits for a holder whose time is running.
    #[test]
    fn it_keeps_the_rules_and_gets_on(
        priority in any::<bool>(),
        asks in any::<bool>(),
        steps in prop::collection::vec((any::<u8>(), 0_u8..6, 0_u16..20_000), 1..80),
    ) {
        let mut world = World::new(priority, asks);
        for step in steps {
            world.step(step);
        }
        world.task = Task::Contend;
        world.hear();
        let begun = world.now;
        let mut calls = 0;
        // A term that the random steps left without a renewal may still expire.
        while !world.leads() || world.candidacy.renewed < begun {
            if matches!(world.next(), Next::Call(_)) {
                calls += 1;
            }
            world.go_on(2);
            prop_assert!(calls < 60, "{:?}", world.candidacy);
            prop_assert!(world.now <= begun.saturating_add(Duration::from_secs(120)), "{:?}", world.candidacy);
        }
        // An answer is never lost.
        let term = world.lease.as_ref().map(LeaseRecord::term);
        let begun = world.now;
        calls = 0;
        while world.now < begun.saturating_add(Duration::from_secs(60)) {
            if matches!(world.next(), Next::Call(_)) {
                calls += 1;
            }
            world.go_on(2);
            if world.step_old() {
                calls += 1;
            }
            prop_assert!(world.leads(), "{:?}", world.candidacy);
            prop_assert!(calls < 100, "a flood of calls: {calls}");
        }
        prop_assert_eq!(world.lease.as_ref().map(LeaseRecord::term), term);
    }
}
