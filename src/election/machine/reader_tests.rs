//! Edits of the lease that leave a holder writing: what is not its word clears nothing.

use super::{
    Decision, Next, Order,
    examples::{at, edited, leading, machine, next, opens, preceding, reads, record, spec, without_term},
};
use crate::election::{hooks::LeaseCall, preemption::HANDOVER};
use serde_json::{Value, json};

/// The first holder of a lease has the count 0, and a lease without a count is read as 0.
#[test]
fn s6_wiped_spec_of_the_first_holder_is_no_release() {
    for wiped in [json!({}), json!(null), json!({ "leaseTransitions": null })] {
        let mut machine = machine();
        machine.observe(spec(1, "other", 0, "a", "b", 15), at(0));
        machine.observe(record(2, &wiped), at(1));
        assert!(!opens(&mut machine, 3, 1), "other may write until 15 s: {wiped}");
    }
}

/// A user removes the duration, or types too many digits, and then types a short one.
#[test]
fn s6_time_edited_twice_ends_no_holder() {
    for first in [json!(null), json!(0), json!(2_000_000_000)] {
        let mut machine = machine();
        let live = spec(1, "other", 3, "a", "b", 60);
        machine.observe(live.clone(), at(0));
        let edit = |version, seconds: Value| {
            edited(&live, version, |lease| lease["spec"]["leaseDurationSeconds"] = seconds)
        };
        machine.observe(edit(2, first.clone()), at(1));
        machine.observe(edit(3, json!(1)), at(2));
        for now in [3, 20, 59] {
            assert!(!opens(&mut machine.clone(), 4, now), "other may write until 60 s: {first}, at {now} s");
        }
        assert!(opens(&mut machine, 4, 62), "{first}");
    }
}

/// A client-go holder began again with a longer time: it keeps its count and its acquisition. A candidate that polls has
/// not seen that before a user frees the lease.
#[test]
fn s6_freed_lease_waits_for_the_longer_time_that_stands_in_it() {
    for name in ["", "thief"] {
        let mut machine = machine();
        machine.observe(spec(1, "other", 3, "a", "b", 15), at(0));
        reads(&mut machine, spec(4, name, 3, "a", "c", 60), 3);
        let now = if name.is_empty() { 3 } else { 63 };
        let _ = opens(&mut machine, 5, now);
        assert!(
            machine.formers.until(at(now)).is_some_and(|until| until >= at(62)) || now >= 62,
            "{name:?}: other may write until 62 s or later: {:?}",
            machine.formers.until(at(now))
        );
    }
}

/// A candidate that polls has not seen the renewals before a wipe or a restored backup.
#[test]
fn s6_wiped_or_restored_lease_hides_no_renewal() {
    let wiped = record(9, &json!({}));
    let restored = spec(9, "", 2, "x", "x", 1);
    let restored_dead = spec(9, "dead", 2, "x", "x", 1);
    for term in [0, 3] {
        for news in [&wiped, &restored, &restored_dead] {
            if term == 0 && news != &wiped {
                continue;
            }
            let mut machine = machine();
            machine.observe(spec(1, "other", term, "a", "b", 15), at(0));
            // The holder renews at 2, 4, ..., 12 s.
            reads(&mut machine, news.clone(), 13);
            assert!(!opens(&mut machine, 10, 16), "other may write until 22 s: {term}, {news:?}");
        }
    }
}

/// After a wipe, counts begin again. The next holder has the count of the silent one, and acknowledges its own term.
#[test]
fn s4_word_of_a_count_that_came_again_clears_no_other_holder() {
    let mut machine = preceding();
    machine.observe(spec(1, "silent", 1, "a", "b", 15), at(0));
    machine.observe(record(2, &json!({})), at(1));
    // It began after the wipe, so it knows of no holder.
    let next = spec(3, "next", 1, "c", "c", 15);
    machine.observe(next, at(1));
    assert_eq!(machine.decide(at(2), false), Decision::Preempt);
    assert!(!opens(&mut machine, 4, 2));
    let own = machine.record().unwrap().clone();
    let from = own.annotation(HANDOVER).unwrap().as_str().unwrap().to_owned();
    let done = edited(&own, 5, |lease| {
        lease["metadata"]["annotations"][HANDOVER] = format!("{from}, done").into();
    });
    machine.observe(done, at(3));
    assert!(machine.is_held_back(at(3)), "the silent one may write until 15 s");
}

/// The same, and this candidate has not seen the wipe.
#[test]
fn s4_word_of_one_of_two_holders_with_a_count_is_not_the_others() {
    let mut machine = preceding();
    machine.observe(spec(1, "silent", 1, "a", "b", 15), at(0));
    reads(&mut machine, spec(3, "next", 1, "c", "c", 15), 1);
    assert!(!opens(&mut machine, 4, 2));
    let own = machine.record().unwrap().clone();
    for from in ["from 1 to 2", "from 2 to 2"] {
        let mut machine = machine.clone();
        let done = format!("{from}, done");
        machine.observe(edited(&own, 5, |it| it["metadata"]["annotations"][HANDOVER] = done.into()), at(3));
        assert!(machine.is_held_back(at(3)), "the silent one may write until 15 s");
    }
}

/// The same, and this candidate polls: it misses the next holder, and reads its release.
#[test]
fn s6_release_of_a_count_that_came_again_clears_no_other_holder() {
    let mut machine = machine();
    machine.observe(spec(1, "silent", 1, "a", "b", 15), at(0));
    machine.observe(record(2, &json!({})), at(1));
    reads(&mut machine, spec(4, "", 1, "d", "d", 1), 3);
    assert!(!opens(&mut machine, 5, 3), "the silent one may write until 15 s");
}

/// A restored backup gives the count of the live holder to another one.
#[test]
fn s6_restored_count_clears_no_other_holder() {
    for bumped in [false, true] {
        let from = if bumped { 1_000 } else { 50 };
        let mut machine = machine();
        machine.observe(spec(100, "silent", 5, "a", "b", 15), at(0));
        reads(&mut machine, spec(from, "", 4, "x", "x", 1), 1);
        reads(&mut machine, spec(from + 2, "", 5, "d", "d", 1), 3);
        assert!(!opens(&mut machine, from + 3, 3), "the silent one may write until 15 s, bumped: {bumped}");
    }
}

/// A dead holder's time was long. A user shortens it in the lease to speed things up; the candidate waits on.
#[test]
fn long_wait_for_a_time_that_was_shortened_is_trouble() {
    let mut machine = machine();
    let dead = spec(1, "dead", 3, "a", "b", 3_600);
    machine.observe(dead.clone(), at(0));
    assert_eq!(machine.long_wait(at(1)), None, "as it is written");
    machine.observe(edited(&dead, 2, |lease| lease["spec"]["leaseDurationSeconds"] = 15.into()), at(1));
    assert_eq!(machine.decide(at(30), false), Decision::WaitUntil(at(3_601)));
    assert!(machine.long_wait(at(30)).is_some_and(|it| it.contains("dead")));
}

/// A restored backup has given the count of this candidate to another holder, which is preempted now. This one learns of
/// all that late.
#[test]
fn s4_candidate_gives_no_word_after_its_time() {
    let mut me = leading();
    let own = me.record().unwrap().clone();
    let taken = edited(&own, 9, |lease| {
        lease["spec"] = spec(9, "next", 5, "n", "n", 15).into_json()["spec"].take();
        lease["metadata"]["annotations"] = json!({ HANDOVER: "from 4 to 5" });
    });
    reads(&mut me, taken, 16);
    for order in [Order::Contend, Order::Hold, Order::StayAway, Order::GiveUp { failed: 0 }] {
        assert_ne!(next(&me, order, &without_term(16)), Next::Call(LeaseCall::Acknowledge), "{order:?}");
    }
}

/// The silent one speaks for its own count. The one that was preempted has the same, and has said nothing.
#[test]
fn s4_word_of_a_holder_whose_count_came_again_is_not_the_next_ones() {
    let mut machine = preceding();
    machine.observe(spec(1, "silent", 1, "a", "b", 15), at(0));
    machine.observe(record(2, &json!({})), at(1));
    machine.observe(spec(3, "third", 1, "c", "c", 15), at(2));
    machine.observe(spec(4, "third", 1, "c", "d", 15), at(8));
    assert!(!opens(&mut machine, 5, 9));
    let own = machine.record().unwrap().clone();
    let done = |lease: &mut Value| lease["metadata"]["annotations"][HANDOVER] = "from 1 to 2, done".into();
    machine.observe(edited(&own, 6, done), at(10));
    assert!(machine.is_held_back(at(22)), "the third one may write until 23 s");
}
