//! A holder whose lease was deleted or made anew counts until its time is over.

use super::{
    Decision, Machine,
    examples::{SETTLED, at, edited, held, is_news, machine, preceding, written},
};
use crate::{
    election::preemption::{HANDOVER, Handover},
    lease::LeaseRecord,
};

/// This lease in another object.
fn another(lease: &LeaseRecord, version: u64) -> LeaseRecord {
    edited(lease, version, |lease| lease["metadata"]["uid"] = "another".into())
}

/// A read says that there is no lease.
fn reads_nothing(machine: &mut Machine, seconds: u64) {
    machine.observe_absence(None, at(seconds));
}

/// A holder that does not know of the deletion may still write.
#[test]
fn s6_a_deleted_lease_waits_for_its_holder() {
    let mut machine = machine();
    machine.observe(held(1, "other", 0), at(0));
    assert!(is_news(&mut machine, |it| it.observe_absence(Some(&held(2, "other", 0)), at(0))));
    assert_eq!(machine.decide(at(1), false), Decision::WaitUntil(at(15)));
    machine.observe_absence(None, at(0));
    assert_eq!(machine.decide(at(14), false), Decision::WaitUntil(at(15)));
    assert_eq!(machine.decide(at(15), false), Decision::Take);
    // Its own lease, or a free one, is free at once.
    let claim = machine.acquisition(at(0), "now".into());
    machine.observe(written(3, &claim), at(20));
    machine.observe_absence(None, at(0));
    assert_eq!(machine.decide(at(20), false), Decision::Take);
}

/// A watch that lags tells of this candidate's own term after two reads have shown the next holder and the deletion.
#[test]
fn s6_late_news_of_a_deleted_lease_frees_nothing() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let claim = machine.acquisition(at(0), "now".into());
    let own = written(2, &claim);
    machine.observe(own.clone(), at(0));
    machine.observe_read(held(3, "other", 0), Some("2"), at(1));
    for read_again in [false, true] {
        machine.observe_absence(None, at(2));
        if read_again {
            machine.observe_absence(None, at(3));
        }
        machine.observe(own.clone(), at(3));
        reads_nothing(&mut machine, 4);
        assert_eq!(machine.decide(at(4), false), Decision::WaitUntil(at(16)), "read again: {read_again}");
    }
}

/// Another candidate has held it meanwhile, and may not have heard of the deletion.
#[test]
fn s6_a_creation_that_lands_late_waits_for_the_deleted_holder() {
    for told in [false, true] {
        let mut machine = machine();
        machine.observe_absence(None, at(0));
        let claim = machine.acquisition(at(1), "now".into());
        machine.observe(held(2, "other", 0), at(2));
        if told {
            machine.observe_absence(Some(&held(3, "other", 0)), at(3));
        }
        machine.observe(another(&written(4, &claim), 4), at(3));
        assert_eq!(machine.decide(at(3), false), Decision::Hold(at(17)), "told: {told}");
        assert_eq!(machine.decide(at(17), false), Decision::Open, "told: {told}");
    }
}

/// A watch that lags shows the free lease of before the holder, after reads have shown the holder and the deletion.
#[test]
fn s6_late_news_of_a_free_lease_frees_nothing() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    machine.observe_read(held(2, "other", 0), Some("1"), at(1));
    reads_nothing(&mut machine, 2);
    assert_eq!(machine.decide(at(2), false), Decision::WaitUntil(at(16)));
    machine.observe(held(1, "", 0), at(3));
    assert_eq!(machine.decide(at(3), false), Decision::WaitUntil(at(16)));
    // An acquisition begins with a read.
    reads_nothing(&mut machine, 3);
    assert_eq!(machine.decide(at(3), false), Decision::WaitUntil(at(16)));
    assert_eq!(machine.decide(at(16), false), Decision::Take);
}

/// The watch has told of the deletion, a read said so again, and the next watch begins in the past.
#[test]
fn s6_a_watch_that_begins_before_the_deletion_frees_nothing() {
    let mut machine = machine();
    machine.observe(held(2, "other", 0), at(0));
    machine.observe_absence(Some(&held(3, "other", 0)), at(1));
    reads_nothing(&mut machine, 2);
    machine.observe(held(1, "", 0), at(3));
    assert_eq!(machine.record(), None, "the watch has told of the deletion of this object");
    assert_eq!(machine.decide(at(3), false), Decision::WaitUntil(at(15)));
}

/// As a user replaces it, or as a candidate creates and releases it that knows nothing of the holder.
#[test]
fn s6_a_lease_made_anew_waits_for_the_deleted_holder() {
    for told in [false, true] {
        let mut machine = machine();
        machine.observe(held(1, "other", 0), at(0));
        if told {
            machine.observe_absence(Some(&held(2, "other", 0)), at(1));
        }
        machine.observe(another(&held(3, "", 0), 3), at(2));
        assert_eq!(machine.decide(at(2), false), Decision::WaitUntil(at(15)), "told: {told}");
        assert_eq!(machine.decide(at(15), false), Decision::Take);
    }
}

/// The deleted holder makes the lease anew and releases it: it knows all, and the lease is free at once.
#[test]
fn a_lease_that_its_holder_makes_anew_can_be_taken_once_it_is_free() {
    let mut machine = machine();
    machine.observe(held(1, "other", 0), at(0));
    machine.observe_absence(Some(&held(2, "other", 0)), at(1));
    let anew = |holder, version| another(&held(3, holder, 0), version);
    machine.observe(anew("other", 3), at(2));
    machine.observe(anew("", 4), at(3));
    assert_eq!(machine.decide(at(3), false), Decision::Take);
}

/// A third candidate does not know of the deleted holder. This one precedes it, and takes the lease while that holder may
/// still write.
#[test]
fn s6_preemption_waits_for_the_deleted_holder_too() {
    let mut machine = preceding();
    machine.observe(held(1, "other", 0), at(0));
    machine.observe_absence(Some(&held(2, "other", 0)), at(1));
    machine.observe(another(&held(3, "third", 0), 3), at(2));
    assert_eq!(machine.decide(at(2), false), Decision::Preempt);
    let claim = machine.acquisition(at(2), "now".into());
    let own = edited(&machine.record().unwrap().with(&claim), 4, |_| ());
    machine.observe(own, at(2));
    // The third candidate says that its writes have ended.
    let done = machine.record().unwrap().with(&Handover::acknowledgement(machine.record().unwrap()).unwrap());
    machine.observe(edited(&done, 5, |_| ()), at(3));
    assert_eq!(machine.decide(at(3), false), Decision::Hold(at(15)));
    assert!(machine.is_held_back(at(3)));
    assert_eq!(machine.decide(at(15), false), Decision::Open);
    // A newcomer preempts it, and would open once its acknowledgement comes.
    let preempted = edited(machine.record().unwrap(), 6, |lease| {
        lease["spec"]["holderIdentity"] = "newcomer".into();
        lease["spec"]["leaseTransitions"] = 5.into();
        lease["spec"]["acquireTime"] = "later".into();
        lease["metadata"]["annotations"][HANDOVER] = "from 4 to 5".into();
    });
    machine.observe(preempted, at(4));
    assert!(machine.own.owes_an_acknowledgement());
    assert_eq!(machine.formers.settle_at(SETTLED, true, at(4)), at(15));
}

/// A candidate has preempted another one, and its own lease is made anew while it waits for that one.
#[test]
fn s6_a_lease_made_anew_waits_for_the_overtaken_holder_too() {
    for told in [false, true] {
        let mut machine = preceding();
        machine.observe(held(1, "other", 0), at(0));
        assert_eq!(machine.decide(at(1), false), Decision::Preempt);
        let claim = machine.acquisition(at(1), "now".into());
        let own = edited(&machine.record().unwrap().with(&claim), 2, |_| ());
        machine.observe(own.clone(), at(1));
        assert_eq!(machine.decide(at(1), false), Decision::Hold(at(15)));
        if told {
            machine.observe_absence(Some(&edited(&own, 3, |_| ())), at(2));
            assert_eq!(machine.decide(at(2), false), Decision::WaitUntil(at(15)));
        }
        machine.observe(another(&held(4, "", 0), 4), at(2));
        assert_eq!(machine.decide(at(2), false), Decision::WaitUntil(at(15)), "told: {told}");
    }
}

/// The second one makes the lease anew, and knows nothing of the first one.
#[test]
fn s6_word_of_one_deleted_holder_proves_nothing_of_another() {
    let mut machine = machine();
    machine.observe(held(1, "other", 0), at(0));
    machine.observe_absence(Some(&held(2, "other", 0)), at(1));
    machine.observe(another(&held(3, "third", 0), 3), at(2));
    machine.observe_absence(Some(&another(&held(4, "third", 0), 4)), at(3));
    let anew = |holder, version| {
        edited(&held(version, holder, 0), version, |lease| lease["metadata"]["uid"] = "the next".into())
    };
    machine.observe(anew("third", 5), at(4));
    machine.observe(anew("", 6), at(5));
    assert_eq!(machine.decide(at(5), false), Decision::WaitUntil(at(15)));
}

/// Two reads were answered from before the creation of a lease, and a watch showed it late.
#[test]
fn a_lease_that_was_never_deleted_can_be_taken_once_it_is_free() {
    let mut machine = machine();
    machine.observe(held(5, "other", 1), at(0));
    reads_nothing(&mut machine, 1);
    machine.observe(held(4, "other", 0), at(2));
    reads_nothing(&mut machine, 3);
    machine.observe(held(6, "", 0), at(4));
    assert_eq!(machine.decide(at(4), false), Decision::Take);
}
