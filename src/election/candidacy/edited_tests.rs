//! A lease that was restored, wiped or edited while its holder may still write.

use super::{
    Candidacy, Decision,
    examples::{at, candidacy, edited, held, record, written},
};
use crate::{election::preemption::HANDOVER, lease::LeaseRecord};
use serde_json::json;

fn spec(version: u64, holder: &str, term: u64, acquired: &str, renewed: &str, seconds: u64) -> LeaseRecord {
    record(
        version,
        &json!({ "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": term,
                             "acquireTime": acquired, "renewTime": renewed }),
    )
}

fn reads(candidacy: &mut Candidacy, news: LeaseRecord, seconds: u64) {
    let before = candidacy.version().map(str::to_owned);
    candidacy.observe_read(Some(news), before.as_deref(), at(seconds));
}

/// Takes the lease if it may. Returns whether its gate is then open.
fn opens(candidacy: &mut Candidacy, version: u64, now: u64) -> bool {
    let decision = candidacy.decide(at(now), false);
    if !matches!(decision, Decision::Take | Decision::Succeed | Decision::Preempt) {
        return false;
    }
    let seen = candidacy.record().unwrap().clone();
    let claim = candidacy.acquisition(at(now), format!("claim {version}"));
    candidacy.claim_is_settled();
    candidacy.observe(edited(&seen.with(&claim), version, |_| ()), at(now));
    candidacy.is_current() && !candidacy.is_held_back(at(now))
}

/// etcd is restored from a snapshot of before the holder's term; the lease was free then.
#[test]
fn s6_restored_free_lease_waits_for_the_live_holder() {
    let mut candidacy = candidacy();
    candidacy.observe(spec(100, "live", 5, "a", "b", 15), at(0));
    reads(&mut candidacy, spec(50, "", 3, "x", "x", 1), 2);
    assert!(!opens(&mut candidacy, 51, 2), "live may write until 15 s");
}

/// The same with `etcdutl snapshot restore --bump-revision`: versions go on, counts go back.
#[test]
fn s6_restored_bumped_lease_waits_for_the_live_holder() {
    let mut candidacy = candidacy();
    candidacy.observe(spec(100, "live", 5, "a", "b", 15), at(0));
    candidacy.observe(spec(1_000_000, "", 3, "x", "x", 1), at(2));
    assert!(!opens(&mut candidacy, 1_000_001, 2), "live may write until 15 s");
}

/// The snapshot has this process's own earlier term in it.
#[test]
fn s6_restored_own_claim_waits_for_the_live_holder() {
    let mut candidacy = super::examples::leading();
    let own = candidacy.record().unwrap().clone();
    candidacy.observe(spec(100, "live", 5, "a", "b", 15), at(1));
    for bumped in [false, true] {
        let mut candidacy = candidacy.clone();
        let restored = edited(&own, if bumped { 1_000_000 } else { 2 }, |_| ());
        reads(&mut candidacy, restored, 2);
        assert!(!opens(&mut candidacy, 1_000_001, 2), "bumped: {bumped}");
    }
}

/// An older holder, which is dead, comes back, and the live one is forgotten.
#[test]
fn s6_restored_short_holder_does_not_hide_the_live_one() {
    let mut candidacy = candidacy();
    candidacy.observe(spec(100, "live", 5, "a", "b", 60), at(0));
    reads(&mut candidacy, spec(50, "dead", 3, "x", "y", 5), 2);
    assert!(!opens(&mut candidacy, 51, 8), "live may write until 60 s");
}

/// `kubectl replace` (Argo CD: Replace=true) of a manifest with an empty spec; `kubectl patch -p '{"spec":null}'`.
#[test]
fn s6_wiped_spec_waits_for_its_holder() {
    let mut failed = vec![];
    for wiped in [json!({}), json!(null)] {
        let mut candidacy = candidacy();
        candidacy.observe(held(1, "other", 0), at(0));
        candidacy.observe(record(2, &wiped), at(1));
        if opens(&mut candidacy, 3, 1) {
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
        let mut candidacy = candidacy();
        candidacy.observe(held(1, "other", 0), at(0));
        let freed = edited(&held(3, "other", 2), 4, |lease| {
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["leaseDurationSeconds"] = seconds.clone();
        });
        reads(&mut candidacy, freed, 3);
        if opens(&mut candidacy, 5, 3) {
            failed.push(seconds.to_string());
        }
    }
    assert!(failed.is_empty(), "it opens though other may write until 15 s, with a duration of {failed:?}");
}

/// The acknowledgement landed without an answer; then old news of the own claim come late.
#[test]
fn s4_old_news_unsay_no_acknowledgement() {
    for late in [false, true] {
        let mut me = candidacy();
        me.observe(held(1, "", 0), at(0));
        let claim = me.acquisition(at(0), "now".into());
        me.claim_is_settled();
        let own = written(2, &claim);
        me.observe(own.clone(), at(0));
        me.stood(at(0));
        me.opened(own.term());
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
