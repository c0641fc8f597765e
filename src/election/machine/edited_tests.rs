//! A lease that was restored, wiped or edited while its holder may still write.

use super::examples::{at, edited, held, machine, opens, reads, record, spec, written};
use crate::election::preemption::HANDOVER;
use serde_json::json;

/// etcd is restored from a snapshot of before the holder's term; the lease was free then.
#[test]
fn s6_restored_free_lease_waits_for_the_live_holder() {
    let mut machine = machine();
    machine.observe(spec(100, "live", 5, "a", "b", 15), at(0));
    reads(&mut machine, spec(50, "", 3, "x", "x", 1), 2);
    assert!(!opens(&mut machine, 51, 2), "live may write until 15 s");
}

/// The same with `etcdutl snapshot restore --bump-revision`: versions go on, counts go back.
#[test]
fn s6_restored_bumped_lease_waits_for_the_live_holder() {
    let mut machine = machine();
    machine.observe(spec(100, "live", 5, "a", "b", 15), at(0));
    machine.observe(spec(1_000_000, "", 3, "x", "x", 1), at(2));
    assert!(!opens(&mut machine, 1_000_001, 2), "live may write until 15 s");
}

/// The snapshot has this process's own earlier term in it.
#[test]
fn s6_restored_own_claim_waits_for_the_live_holder() {
    let mut machine = super::examples::leading();
    let own = machine.record().unwrap().clone();
    machine.observe(spec(100, "live", 5, "a", "b", 15), at(1));
    for bumped in [false, true] {
        let mut machine = machine.clone();
        let restored = edited(&own, if bumped { 1_000_000 } else { 2 }, |_| ());
        reads(&mut machine, restored, 2);
        assert!(!opens(&mut machine, 1_000_001, 2), "bumped: {bumped}");
    }
}

/// An older holder, which is dead, comes back, and the live one is forgotten.
#[test]
fn s6_restored_short_holder_does_not_hide_the_live_one() {
    let mut machine = machine();
    machine.observe(spec(100, "live", 5, "a", "b", 60), at(0));
    reads(&mut machine, spec(50, "dead", 3, "x", "y", 5), 2);
    assert!(!opens(&mut machine, 51, 8), "live may write until 60 s");
}

/// `kubectl replace` (Argo CD: Replace=true) of a manifest with an empty spec; `kubectl patch -p '{"spec":null}'`.
#[test]
fn s6_wiped_spec_waits_for_its_holder() {
    let mut failed = vec![];
    for wiped in [json!({}), json!(null)] {
        let mut machine = machine();
        machine.observe(held(1, "other", 0), at(0));
        machine.observe(record(2, &wiped), at(1));
        if opens(&mut machine, 3, 1) {
            failed.push(wiped.to_string());
        }
    }
    assert!(failed.is_empty(), "it opens though other may write until 15 s: {failed:?}");
}

/// A polling candidate misses one renewal before a user frees the lease in the form that client-go leaves.
#[test]
fn s6_freed_lease_of_one_second_waits() {
    let mut failed = vec![];
    for seconds in [json!(1), json!(null)] {
        let mut machine = machine();
        machine.observe(held(1, "other", 0), at(0));
        let freed = edited(&held(3, "other", 2), 4, |lease| {
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["leaseDurationSeconds"] = seconds.clone();
        });
        reads(&mut machine, freed, 3);
        if opens(&mut machine, 5, 3) {
            failed.push(seconds.to_string());
        }
    }
    assert!(failed.is_empty(), "it opens though other may write until 15 s, with a duration of {failed:?}");
}

/// The acknowledgement landed without an answer; then old news of the own claim come late.
#[test]
fn s4_old_news_unsay_no_acknowledgement() {
    for late in [false, true] {
        let mut me = machine();
        me.observe(held(1, "", 0), at(0));
        let claim = me.acquisition(at(0), "now".into());
        me.claims.settle_last();
        let own = written(2, &claim);
        me.observe(own.clone(), at(0));
        me.claims.stood(at(0));
        me.opened();
        // Another one preempts it.
        let taken = edited(&own, 3, |lease| {
            lease["spec"] = json!({ "holderIdentity": "next", "leaseDurationSeconds": 15, "leaseTransitions": 5,
                                    "acquireTime": "n", "renewTime": "n" });
            lease["metadata"]["annotations"] = json!({ HANDOVER: "from 4 to 5" });
        });
        reads(&mut me, taken.clone(), 1);
        assert!(me.own.owes_an_acknowledgement());
        assert!(me.acknowledgement().is_some());
        // It lands as version 4. Its answer is lost, and the watch lags.
        if late {
            me.observe(own, at(2));
        }
        // The next one opens (5) and goes on to renew. A user frees the lease (6). The watch broke, so a read shows this.
        let freed = edited(&taken, 6, |lease| {
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["renewTime"] = "opened".into();
            lease["metadata"]["annotations"] = json!({});
        });
        reads(&mut me, freed, 3);
        assert!(!opens(&mut me, 7, 3), "next leads and may write; late: {late}");
    }
}

/// The candidate reads only now and then, so it has not seen who freed the lease, nor how.
#[test]
fn s6_third_elector_is_no_word_of_the_holder() {
    let mut machine = machine();
    machine.observe(held(1, "other", 0), at(0));
    reads(&mut machine, spec(3, "third", 4, "x", "x", 2), 2);
    assert!(!opens(&mut machine, 4, 4), "other may write until 15 s");
}

/// A user makes the lease anew from a saved copy, with an earlier claim of the same pod of a stateful set.
#[test]
fn s6_saved_copy_is_no_claim_of_the_holder() {
    let mut machine = machine();
    machine.observe(held(1, "web-0", 0), at(0));
    machine.observe_absence(Some(&edited(&held(1, "web-0", 0), 2, |_| ())), at(1));
    let copy = edited(&spec(3, "web-0", 2, "long ago", "long ago", 2), 3, |lease| {
        lease["metadata"]["uid"] = "another".into();
    });
    machine.observe(copy, at(1));
    assert!(!opens(&mut machine, 4, 3), "web-0 may write until 15 s");
}

/// A user shortens the time of a live holder, so the one that preempts it waits for that time only.
#[test]
fn s6_preempting_holder_may_open_before_the_preempted_one_expects() {
    let mut me = super::examples::leading();
    let taken = edited(&spec(3, "next", 5, "n", "n", 15), 3, |lease| {
        lease["metadata"]["annotations"] = json!({ HANDOVER: "from 4 to 5" });
    });
    reads(&mut me, taken.clone(), 1);
    assert!(me.own.owes_an_acknowledgement());
    // It opens after 2 s, and a user frees the lease. This candidate sees only that.
    reads(&mut me, edited(&taken, 6, |lease| lease["spec"]["holderIdentity"] = "".into()), 4);
    assert!(!opens(&mut me, 7, 4), "next may write until 16 s");
}
