//! Tests of a candidate's decisions, with examples and with random steps.

use super::{
    Decision,
    claims::HeldBy,
    examples::{at, held, is_news, machine, record, written},
};
use crate::lease::{LeaseRecord, LeaseTiming, LeaseUpdate};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn its_first_call_is_a_read() {
    assert_eq!(machine().decide(at(0), false), Decision::Read);
}

#[test]
fn it_creates_a_missing_lease_and_takes_a_free_one() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    machine.observe_absence(None, at(0));
    assert_eq!(machine.decide(at(0), false), Decision::Take);
    machine.observe(held(1, "", 0), at(0));
    assert_eq!(machine.decide(at(0), false), Decision::Take);
}

#[test]
fn s6_it_counts_from_its_own_clock() {
    let mut machine = machine();
    machine.observe(held(1, "other", 0), at(100));
    assert_eq!(machine.decide(at(100), false), Decision::WaitUntil(at(115)));
    // The same record again, later and at another version: for example with a new label.
    machine.observe(held(2, "other", 0), at(110));
    assert_eq!(machine.decide(at(114), false), Decision::WaitUntil(at(115)));
    assert_eq!(machine.decide(at(115), false), Decision::Take);
    machine.observe(held(3, "other", 1), at(115));
    assert_eq!(machine.decide(at(115), false), Decision::WaitUntil(at(130)));
}

/// A watch may be slower than an answer.
#[test]
fn old_news_changes_nothing() {
    let mut machine = machine();
    machine.observe_absence(None, at(0));
    let claim = machine.acquisition(at(0), "now".into());
    assert!(is_news(&mut machine, |it| it.observe(written(10, &claim), at(0))));
    assert!(machine.is_mine());
    assert!(!is_news(&mut machine, |it| it.observe(held(9, "other", 0), at(0))));
    assert!(!is_news(&mut machine, |it| it.observe_absence(Some(&held(8, "other", 0)), at(0))));
    assert!(machine.is_mine());
    assert!(is_news(&mut machine, |it| it.observe_absence(Some(&held(11, "me", 0)), at(0))));
    assert!(!machine.is_mine());
}

/// After a restored etcd backup or one absurd event, a read that was sent later is trusted.
#[test]
fn a_read_with_a_lower_version_is_trusted() {
    let mut machine = machine();
    machine.observe(held(u64::MAX, "other", 0), at(0));
    let before = machine.version().map(str::to_owned);
    assert!(!is_news(&mut machine, |it| it.observe(held(5, "other", 1), at(1))));
    assert!(is_news(&mut machine, |it| it.observe_read(held(5, "other", 1), before.as_deref(), at(1))));
    assert_eq!(machine.decide(at(1), false), Decision::WaitUntil(at(16)));
    // Newer news arrived while the read was under way.
    machine.observe(held(7, "other", 2), at(2));
    assert!(!is_news(&mut machine, |it| it.observe_read(held(6, "third", 0), Some("5"), at(3))));
}

/// Rule S8: the holder learns of the deletion meanwhile, and creates the lease again.
#[test]
fn s8_a_newcomer_waits_before_it_recreates_the_lease() {
    let mut machine = machine();
    machine.observe_absence(None, at(0));
    let pause = at(0).saturating_add(LeaseTiming::fast().pause());
    assert_eq!(machine.decide(at(0), false), Decision::WaitUntil(pause));
    machine.observe_absence(None, at(0));
    assert_eq!(machine.decide(pause, false), Decision::Take);
}

/// Rule S8: the same spec in another object is another lease.
#[test]
fn s8_a_copied_claim_is_another_lease() {
    for created in [true, false] {
        let mut machine = machine();
        if created {
            machine.observe_absence(None, at(0));
        } else {
            machine.observe(held(1, "", 0), at(0));
        }
        let claim = machine.acquisition(at(0), "now".into());
        machine.observe(written(2, &claim), at(0));
        assert!(machine.is_mine() && machine.is_current());
        let mut copy = written(3, &claim).into_json();
        copy["metadata"]["uid"] = "another".into();
        machine.observe(LeaseRecord::from_json(copy).unwrap(), at(1));
        assert!(!machine.is_mine() && !machine.is_current() && machine.held_by() != HeldBy::Double);
        assert_eq!(machine.decide(at(1), true), Decision::Take, "in a new term");
    }
}

/// Of several unanswered swaps, an early one has taken effect.
#[test]
fn an_unanswered_claim_is_recognised_later() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let landed = machine.acquisition(at(0), "first".into());
    for number in 0..5 {
        machine.acquisition(at(0), number.to_string());
    }
    machine.observe(written(2, &landed), at(9));
    assert!(machine.is_mine() && !machine.is_current() && machine.held_by() != HeldBy::Double);
    assert_eq!(machine.decide(at(9), false), Decision::Take);
    assert_eq!(machine.decide(at(9), true), Decision::Take, "it is not the term that it leads in");
}

/// The candidate holds the lease but cannot write. Even after many attempts it recognises its claim, and releases the
/// lease.
#[test]
fn a_claim_in_the_lease_is_never_forgotten() {
    let mut machine = machine();
    machine.observe_absence(None, at(0));
    let landed = machine.acquisition(at(0), "first".into());
    machine.observe(written(1, &landed), at(0));
    for number in 0..100 {
        machine.acquisition(at(0), number.to_string());
        assert!(machine.is_mine() && machine.held_by() != HeldBy::Double);
    }
}

/// Rule S5: with another count or acquire time, the same name belongs to another process.
#[test]
fn s5_count_and_time_identify_its_claim() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let claim = machine.acquisition(at(0), "now".into());
    let others = [
        LeaseUpdate { transitions: claim.transitions + 1, ..claim.clone() },
        LeaseUpdate { acquire_time: "later".into(), ..claim.clone() },
        LeaseUpdate { holder: "other".into(), ..claim.clone() },
    ];
    for (version, other) in (2..).zip(&others) {
        machine.observe(written(version, other), at(0));
        assert!(!machine.is_mine() && !machine.is_current(), "{other:?}");
    }
    machine.observe(written(9, &claim), at(0));
    assert!(machine.is_mine() && machine.is_current());
}

/// The other candidates trust the duration in the lease.
#[test]
fn a_claim_with_a_shortened_duration_is_taken_again() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let mut claim = machine.acquisition(at(0), "now".into());
    machine.observe(written(2, &claim), at(0));
    assert!(machine.is_current());
    claim.duration_seconds = 1;
    machine.observe(written(3, &claim), at(0));
    assert!(machine.is_mine() && !machine.is_current());
}

#[test]
fn it_renews_a_term_and_retakes_an_expired_one() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let claim = machine.acquisition(at(0), "now".into());
    assert_eq!(claim.transitions, 4);
    let own = written(2, &claim);
    machine.observe(own.clone(), at(0));
    assert_eq!(machine.decide(at(1), false), Decision::Open, "its answer was lost");
    machine.opened();
    assert_eq!(machine.decide(at(1), true), Decision::Renew);
    let renewal = machine.renewal(at(1), "later".into());
    assert_eq!((renewal.acquire_time.as_str(), renewal.renew_time.as_str()), ("now", "later"));
    assert_eq!(renewal.transitions, 4);
    assert_eq!(machine.decide(at(1), false), Decision::Take);
    assert_eq!(machine.acquisition(at(0), "anew".into()).transitions, 5);
}

#[test]
fn its_own_name_counts_only_at_the_start() {
    let mut restarted = machine();
    restarted.observe(held(1, "me", 0), at(0));
    assert!(!restarted.is_mine() && restarted.held_by() != HeldBy::Double);
    assert_eq!(restarted.decide(at(0), false), Decision::Take);
    // Another process renews it.
    restarted.observe(held(2, "me", 1), at(1));
    assert_eq!(restarted.held_by(), HeldBy::Double);
    assert_eq!(restarted.decide(at(1), false), Decision::WaitUntil(at(16)));
}

#[test]
fn the_count_of_transitions_wraps_at_its_maximum() {
    let mut machine = machine();
    machine.observe(record(1, &json!({ "leaseTransitions": i32::MAX })), at(0));
    assert_eq!(machine.acquisition(at(0), "now".into()).transitions, 0);
}

#[test]
fn a_field_that_makes_no_sense_counts_as_missing() {
    for duration in [json!(null), json!(0), json!(-1), json!(1.5), json!("15"), json!([]), json!(1e300)] {
        let spec = json!({ "holderIdentity": "other", "leaseDurationSeconds": duration });
        let mut machine = machine();
        machine.observe(record(1, &spec), at(0));
        assert_eq!(machine.decide(at(14), false), Decision::WaitUntil(at(15)), "{spec}");
        assert!(machine.record().unwrap().oddity().is_some(), "{spec}");
    }
    let mut machine = machine();
    machine
        .observe(record(1, &json!({ "holderIdentity": "other", "leaseDurationSeconds": u64::MAX })), at(0));
    assert!(matches!(machine.decide(at(1_000_000), false), Decision::WaitUntil(_)));
    for spec in [json!(null), json!([]), json!("x"), json!({ "holderIdentity": 7 })] {
        machine.observe(record(2, &spec), at(0));
        assert_eq!(machine.decide(at(0), false), Decision::Take, "{spec}");
        let claim = machine.acquisition(at(0), "now".into());
        assert_eq!(machine.record().unwrap().with(&claim).holder(), Some("me"), "{spec}");
    }
}

proptest! {
    /// Rule S6, with random steps: no candidate takes the lease from a holder whose record changed within the last 15
    /// s of the candidate's own clock.
    #[test]
    fn s6_a_live_holder_is_never_overtaken(steps in prop::collection::vec((0_u64..20, 0_u8..4), 1..60)) {
        let mut machine = machine();
        let (mut now, mut version, mut renewed) = (0, 1, 0);
        let mut last_change = None;
        machine.observe(held(version, "other", renewed), at(now));
        for (pause, what) in steps {
            now += pause;
            version += 1;
            match what {
                0 => renewed += 1, // the holder renews
                1 => {} // another client writes a label
                2 => version -= 1, // the same news again
                _ => { // old news
                    machine.observe(held(version - 2, "another", renewed), at(now));
                    version -= 1;
                }
            }
            if what == 0 || last_change.is_none() {
                last_change = Some(if what == 0 { now } else { 0 });
            }
            machine.observe(held(version, "other", renewed), at(now));
            let until = last_change.unwrap_or(0) + 15;
            let expected = if now >= until { Decision::Take } else { Decision::WaitUntil(at(until)) };
            prop_assert_eq!(machine.decide(at(now), false), expected);
        }
    }
}

/// The watch is late: it shows the last term when the next one has begun.
#[test]
fn news_of_an_earlier_term_closes_nothing() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let mut claims = Vec::new();
    for (version, now) in [(2, 0), (4, 20)] {
        let claim = machine.acquisition(at(now), now.to_string());
        let stands = written(version, &claim);
        machine.observe(stands.clone(), at(now));
        machine.opened();
        claims.push(claim);
    }
    assert!(!is_news(&mut machine, |it| it.observe(written(3, &claims[0]), at(21))));
    machine.observe(written(5, &claims[1]), at(22));
    assert!(machine.own.is_open());
}

/// Rule S8: the answer to a write may come after the news that the lease is gone.
#[test]
fn s8_an_answer_from_before_deletion_is_ignored() {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let claim = machine.acquisition(at(0), "now".into());
    machine.observe(written(2, &claim), at(0));
    assert!(is_news(&mut machine, |it| it.observe_absence(Some(&written(4, &claim)), at(1))));
    assert!(
        !is_news(&mut machine, |it| it.observe(written(3, &claim), at(1))),
        "a renewal that was carried out before"
    );
    assert!(!machine.is_mine());
    // A read is newer than the news of the deletion: it may be a restored backup.
    assert!(is_news(&mut machine, |it| it.observe_read(written(3, &claim), None, at(2))));
    assert!(machine.is_mine());
}
