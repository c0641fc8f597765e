//! A holder that may still write counts until its time is over or it says that it has ended, whatever happens to the lease.

use super::{
    Decision, Machine, Next, Order,
    examples::{at, edited, held, machine, next, preceding, with_priority, without_term},
};
use crate::{
    election::{
        hooks::LeaseCall,
        preemption::{HANDOVER, Handover, Priority},
    },
    lease::LeaseRecord,
};
use serde_json::{Value, json};

/// The lease in the hands of another candidate, which took it in this term.
fn taken(record: &LeaseRecord, version: u64, holder: &str, term: u64, seconds: u64) -> LeaseRecord {
    edited(record, version, |lease| {
        lease["spec"] = json!({ "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": term,
                                "acquireTime": version.to_string(), "renewTime": version.to_string() });
    })
}

/// The lease as its holder releases it.
fn released(record: &LeaseRecord, version: u64) -> LeaseRecord {
    edited(record, version, |lease| {
        let spec = &mut lease["spec"];
        spec["holderIdentity"] = "".into();
        spec["leaseDurationSeconds"] = 1.into();
        (spec["acquireTime"], spec["renewTime"]) = (version.to_string().into(), version.to_string().into());
    })
}

/// The lease as a user frees it: `kubectl patch` changes the holder alone.
fn freed(record: &LeaseRecord, version: u64) -> LeaseRecord {
    edited(record, version, |lease| lease["spec"]["holderIdentity"] = "".into())
}

/// The candidate acquires the lease at this second. Returns the lease then.
fn acquires(machine: &mut Machine, version: u64, now: u64) -> LeaseRecord {
    let seen = machine.record().unwrap().clone();
    let claim = machine.acquisition(at(now), format!("claim {version}"));
    machine.claims.settle_last();
    let own = edited(&seen.with(&claim), version, |_| ());
    machine.observe(own.clone(), at(now));
    own
}

/// A candidate that has preempted the holder of term 3 at 1 s and waits until 15 s. The lease has version 2.
fn waiting() -> (Machine, LeaseRecord) {
    let mut machine = preceding();
    machine.observe(held(1, "silent", 0), at(0));
    assert_eq!(machine.decide(at(1), false), Decision::Preempt);
    let own = acquires(&mut machine, 2, 1);
    assert_eq!(machine.decide(at(1), false), Decision::Hold(at(15)));
    (machine, own)
}

/// What happens to the lease of a candidate that waits: how it comes to be free, and by when.
fn ways_to_be_free(own: &LeaseRecord) -> Vec<(&'static str, Vec<LeaseRecord>, u64)> {
    let third = taken(own, 3, "third", 5, 15);
    let short = taken(own, 3, "third", 5, 2);
    vec![
        ("freed by hand", vec![freed(own, 3)], 2),
        ("a release that is not its own", vec![released(own, 3)], 2),
        ("taken and released", vec![third.clone(), released(&third, 4)], 2),
        ("taken for a short time", vec![short], 4),
    ]
}

#[test]
fn s6_pending_holder_outlives_every_change_of_the_lease() {
    let (_, own) = waiting();
    for (what, states, free_at) in ways_to_be_free(&own) {
        let (mut machine, _) = waiting();
        for state in states {
            machine.observe(state, at(2));
        }
        let takes = machine.decide(at(free_at), false);
        assert!(matches!(takes, Decision::Take | Decision::Preempt), "{what}: {takes:?}");
        let own = acquires(&mut machine, 5, free_at);
        assert_eq!(machine.decide(at(free_at), false), Decision::Hold(at(15)), "{what}");
        assert_eq!(machine.decide(at(15), false), Decision::Open, "{what}");
        // The claim says so to the next process of this name, and to all others.
        assert!(Handover::under_way(&own).is_some(), "{what}");
        for mut other in [preceding(), with_priority("other", Priority::new("other", |_| true).ok())] {
            other.observe(own.clone(), at(free_at + 1));
            other.observe(freed(&own, 6), at(free_at + 1));
            acquires(&mut other, 7, free_at + 1);
            assert!(
                matches!(other.decide(at(free_at + 1), false), Decision::Hold(until) if until >= at(15)),
                "{what}"
            );
        }
    }
}

/// The claim was never written, and the holder releases the lease in good order.
#[test]
fn claim_that_never_stood_delays_nothing_after_a_release() {
    let mut machine = preceding();
    let before = held(1, "other", 0);
    machine.observe(before.clone(), at(0));
    machine.acquisition(at(1), "lost".into());
    machine.observe(released(&before, 2), at(2));
    assert_eq!(machine.decide(at(2), false), Decision::Take);
    let own = acquires(&mut machine, 3, 2);
    assert!(!machine.is_held_back(at(2)) && Handover::under_way(&own).is_none());
}

/// The claim stood, though this candidate never saw it: the watch shows only what came after it.
#[test]
fn s6_claim_without_an_answer_may_have_stood_unseen() {
    let mut machine = preceding();
    let before = held(1, "silent", 0);
    machine.observe(before.clone(), at(0));
    machine.acquisition(at(1), "unanswered".into());
    machine.observe(released(&taken(&before, 3, "third", 5, 15), 4), at(2));
    acquires(&mut machine, 5, 2);
    assert_eq!(machine.decide(at(2), false), Decision::Hold(at(15)));
}

/// The holder has not said anything. A user has.
#[test]
fn s6_lease_freed_by_hand_waits_for_its_holder() {
    let mut machine = machine();
    machine.observe(held(1, "other", 0), at(0));
    machine.observe(freed(&held(1, "other", 0), 2), at(1));
    assert_eq!(machine.decide(at(1), false), Decision::Take);
    let own = acquires(&mut machine, 3, 1);
    assert_eq!(Handover::under_way(&own).map(|it| it.from), Some(3), "it asks the holder");
    assert_eq!(machine.decide(at(1), false), Decision::Hold(at(15)));
    machine.observe(edited(&own.with(&Handover::acknowledgement(&own).unwrap()), 4, |_| ()), at(2));
    assert_eq!(machine.decide(at(2), false), Decision::Open);
}

/// It was freed before this process began, so nothing says since when.
#[test]
fn s6_newcomer_waits_for_the_last_holder_of_a_freed_lease() {
    let mut machine = machine();
    machine.observe(freed(&held(1, "other", 0), 2), at(3));
    acquires(&mut machine, 3, 3);
    assert_eq!(machine.decide(at(3), false), Decision::Hold(at(18)));
    for never_held in [json!({}), json!({ "holderIdentity": "", "leaseDurationSeconds": 15 })] {
        let mut machine = self::machine();
        machine.observe(edited(&held(1, "", 0), 1, |lease| lease["spec"] = never_held), at(3));
        acquires(&mut machine, 3, 3);
        assert!(!machine.is_held_back(at(3)));
    }
}

/// A user frees the lease. Its holder sees that, and tells the next one that its writes have ended.
#[test]
fn s4_holder_of_a_freed_lease_acknowledges() {
    let mut holder = super::examples::leading();
    let own = holder.record().unwrap().clone();
    holder.observe(freed(&own, 3), at(1));
    assert!(!holder.own.owes_an_acknowledgement() && !holder.own.is_open());
    let next = edited(&taken(&own, 4, "next", 5, 15), 4, |lease| {
        lease["metadata"]["annotations"] = json!({ HANDOVER: "from 4 to 5" });
    });
    holder.observe(next, at(1));
    assert!(holder.own.owes_an_acknowledgement());
}

/// An edit of the time says nothing of the holder.
#[test]
fn s6_time_shortened_by_hand_ends_no_holder() {
    let shortened = |record: &LeaseRecord, version| {
        edited(record, version, |lease| lease["spec"]["leaseDurationSeconds"] = 1.into())
    };
    let mut machine = machine();
    machine.observe(held(1, "other", 0), at(0));
    machine.observe(shortened(&held(1, "other", 0), 2), at(1));
    machine.observe(
        edited(&shortened(&held(1, "other", 0), 3), 3, |lease| {
            lease["spec"]["leaseDurationSeconds"] = 2.into();
        }),
        at(2),
    );
    assert_eq!(machine.decide(at(14), false), Decision::WaitUntil(at(16)));
    // The holder renews with a shorter time of its own, twice.
    machine.observe(shortened(&held(4, "other", 3), 4), at(3));
    machine.observe(shortened(&held(5, "other", 4), 5), at(4));
    assert_eq!(machine.decide(at(4), false), Decision::WaitUntil(at(5)));
    // It makes no sense, so an edit mends it.
    let absurd =
        edited(&held(6, "other", 5), 6, |lease| lease["spec"]["leaseDurationSeconds"] = 2_000_000_000.into());
    machine.observe(absurd.clone(), at(5));
    machine.observe(shortened(&absurd, 7), at(6));
    assert_eq!(machine.decide(at(6), false), Decision::WaitUntil(at(7)));
}

/// The watch shows the last state alone: it merged the events, or began late.
#[test]
fn s6_deletion_tells_of_a_holder_that_was_never_shown() {
    let another = |lease: &mut Value| lease["metadata"]["uid"] = "another".into();
    let last = edited(&held(9, "unseen", 0), 9, another);
    for first in
        [None, Some(held(1, "", 0)), Some(held(1, "other", 0)), Some(edited(&held(1, "", 0), 2, another))]
    {
        let mut machine = machine();
        if let Some(first) = first.clone() {
            machine.observe(first, at(0));
        }
        machine.observe_absence(Some(&last), at(3));
        assert_eq!(machine.decide(at(4), false), Decision::WaitUntil(at(18)), "{first:?}");
        assert_eq!(machine.decide(at(18), false), Decision::Take);
    }
    // It waits for another one, which it has preempted.
    let mut machine = machine();
    let last =
        edited(&last, 9, |lease| lease["metadata"]["annotations"] = json!({ HANDOVER: "from 2 to 3" }));
    machine.observe_absence(Some(&last), at(3));
    let next =
        edited(&taken(&last, 10, "unseen", 0, 15), 10, |lease| lease["metadata"]["uid"] = "the next".into());
    machine.observe(next.clone(), at(4));
    machine.observe(released(&next, 11), at(5));
    assert_eq!(
        machine.decide(at(5), false),
        Decision::WaitUntil(at(18)),
        "the one before it may still write"
    );
}

/// Somebody has typed too many digits. A lease that is there is respected.
#[test]
fn absurd_time_of_a_deleted_holder_is_bounded() {
    let absurd =
        edited(&held(1, "other", 0), 1, |lease| lease["spec"]["leaseDurationSeconds"] = 2_000_000_000.into());
    let mut machine = machine();
    machine.observe(absurd.clone(), at(0));
    assert_eq!(machine.decide(at(1), false), Decision::WaitUntil(at(2_000_000_000)));
    machine.observe_absence(Some(&edited(&absurd, 2, |_| ())), at(1));
    assert_eq!(machine.decide(at(1), false), Decision::WaitUntil(at(1 + 24 * 60 * 60)));
    assert!(machine.long_wait(at(1)).is_some_and(|it| it.contains("other")), "it is trouble");
    assert_eq!(machine.long_wait(at(24 * 60 * 60)), None, "the rest is usual");
}

/// The first claim of this process, which preempts, came late: the holder may still be writing.
#[test]
fn s4_earlier_claim_is_not_released_before_the_former_holder() {
    let mut machine = preceding();
    let before = held(1, "other", 0);
    machine.observe(before.clone(), at(0));
    let first = machine.acquisition(at(1), "first".into());
    machine.acquisition(at(2), "second".into());
    machine.observe(edited(&before.with(&first), 3, |_| ()), at(3));
    assert!(machine.is_mine() && !machine.is_current());
    for order in [Order::Contend, Order::Hold, Order::StayAway, Order::GiveUp { failed: 0 }] {
        assert_ne!(next(&machine, order, &without_term(3)), Next::Call(LeaseCall::Release), "{order:?}");
    }
    assert_eq!(machine.decide(at(3), false), Decision::Take, "a claim that others wait for");
}

/// It waits for a silent holder, restarts, and takes the lease that a user has freed meanwhile.
#[test]
fn s6_candidate_waits_again_after_a_restart() {
    let (_, own) = waiting();
    let mut again = machine();
    again.observe(own.clone(), at(2));
    again.observe(freed(&own, 3), at(2));
    acquires(&mut again, 5, 3);
    assert_eq!(again.decide(at(3), false), Decision::Hold(at(17)));
}

/// A layer of the lock may ask for that while the gate is shut. A successor would not wait for the former holder.
#[test]
fn s4_unopened_term_gives_way_after_the_former_holder() {
    let (mut machine, _) = waiting();
    machine.health.begin(at(1));
    machine.give_way(at(2));
    for now in 2..15 {
        let next = next(&machine, Order::Contend, &without_term(now));
        assert_ne!(next, Next::Call(LeaseCall::Release), "{now}");
    }
    assert_eq!(next(&machine, Order::Contend, &without_term(15)), Next::Call(LeaseCall::Release));
}
