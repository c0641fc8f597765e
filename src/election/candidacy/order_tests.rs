//! Which call is next: what goes first if more than one thing is to be done.

use super::{
    Candidacy, Decision, Inputs, Next, Task,
    examples::{at, candidacy, edited, held, leading},
};
use crate::{
    election::{crowd::STANDBYS, hooks::LeaseCall},
    lease::{ErrLockKind, LeaseRecord},
};
use serde_json::json;

fn inputs(task: Task, leads: bool, seconds: u64) -> Inputs {
    Inputs { now: at(seconds), task, leads, settles_at: at(0) }
}

/// A follower that watches the lease of another candidate, with these standbys.
fn follower(standbys: &str) -> Candidacy {
    let mut object = held(1, "other", 0).into_json();
    object["metadata"]["annotations"] = json!({ STANDBYS: standbys });
    let mut follower = candidacy();
    follower.contact.watch_begins(at(0));
    follower.contact.begin(at(0));
    follower.observe(LeaseRecord::from_json(object).unwrap(), at(0));
    follower
}

/// The renewal shows as much as a read, and only the renewal moves the deadline.
#[test]
fn s9_a_leader_in_doubt_reads_until_its_renewal_is_due() {
    let mut leader = leading();
    leader.contact.watch_begins(at(0));
    assert_eq!(leader.next(&inputs(Task::Contend, true, 1)), Next::Call(LeaseCall::Read));
    assert_eq!(leader.next(&inputs(Task::Contend, true, 2)), Next::Call(LeaseCall::Renew));
}

#[test]
fn a_release_does_not_wait_for_the_pause_of_an_earlier_failure() {
    let mut leader = leading();
    for _ in 0..3 {
        leader.contact.fail(ErrLockKind::Timeout, true, at(5));
    }
    let next = |failed| leader.next(&inputs(Task::GiveUp { failed }, true, 5));
    assert_eq!(next(0), Next::Call(LeaseCall::Read));
    assert!(matches!(next(1), Next::Wait(until) if until > at(5)), "it failed since the order");
}

/// Only a candidate that took over from a holder without an orderly end waits for that holder's writes.
#[test]
fn s4_a_term_without_writes_is_released_at_once() {
    let leader = leading();
    let order = inputs(Task::GiveUp { failed: 0 }, true, 1);
    assert_eq!(leader.next(&order), Next::Call(LeaseCall::Release));
}

/// If a write may take effect until the lease runs out, the lease runs out.
#[test]
fn s4_a_lease_that_ends_before_its_writes_is_not_touched_again() {
    let leader = leading();
    let next = |settles_at| {
        let settled = Inputs { settles_at: at(settles_at), ..inputs(Task::StayAway, false, settles_at) };
        leader.next(&settled)
    };
    assert_eq!(next(14), Next::Call(LeaseCall::Release));
    assert_eq!(next(15), Next::Wait(at(17)));
}

#[test]
fn a_standby_leaves_its_place_only_if_it_stays_away() {
    let standby = follower(r#"["me"]"#);
    assert_eq!(standby.next(&inputs(Task::StayAway, false, 1)), Next::Call(LeaseCall::Leave));
    assert!(matches!(standby.next(&inputs(Task::Hold, false, 1)), Next::Wait(_)));
    let mut failing = standby.clone();
    failing.contact.fail(ErrLockKind::Timeout, false, at(1));
    failing.contact.begin(at(1));
    assert!(!failing.should_leave(), "its calls fail");
    let mut beaten = standby;
    beaten.contact.lose_a_race(at(1));
    beaten.contact.recover(LeaseCall::Read, at(1));
    assert!(!beaten.should_leave(), "the lease has changed");
}

/// In a crowd, those that are not next in line would all read at once when the holder falls silent.
#[test]
fn a_follower_far_back_trusts_its_watch_longer() {
    let next_look = |candidacy: &Candidacy| {
        let (mut now, contend) = (0, |now| inputs(Task::Contend, false, now));
        while !matches!(candidacy.next(&contend(now)), Next::Call(LeaseCall::Read)) {
            assert!(now < 15, "it takes the lease then");
            now += 1;
        }
        now
    };
    assert_eq!(next_look(&follower(r#"["me","b","c"]"#)), 4, "it is next");
    let far_back = follower(r#"["a","b","c"]"#);
    assert!(matches!(far_back.next(&inputs(Task::Contend, false, 14)), Next::Wait(_)));
    let mut blind = far_back;
    blind.contact.watch_ends(at(0));
    assert!(next_look(&blind) < 4, "it has no watch");
}

/// The lease was its own, so it waits for no standby. It hears of the deletion twice.
#[test]
fn its_own_deleted_lease_is_free_at_once() {
    let mut leader = leading();
    let with_standbys = edited(leader.record().unwrap(), 3, |lease| {
        lease["metadata"]["annotations"] = json!({ STANDBYS: r#"["a","b","c"]"# });
    });
    leader.observe(with_standbys, at(1));
    for _ in 0..2 {
        leader.observe_absence(None, at(1));
        assert!(leader.turn() <= at(1));
    }
    assert_eq!(leader.decide(at(1), false), Decision::Take);
}

/// Each standby had its time to take the lease, and did not.
#[test]
fn a_claim_drops_the_standbys_whose_time_has_passed() {
    let mut candidate = follower(r#"["a","b","me"]"#);
    let mut left = |seconds| candidate.acquisition(at(seconds), "now".into()).annotations[STANDBYS].clone();
    assert_eq!(left(15).as_deref(), Some(r#"["a","b"]"#), "the lease ends now");
    assert_eq!(left(20), None);
}
