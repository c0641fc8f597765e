//! Tests of preemption, with examples and with random steps.

use super::{
    Decision, Machine,
    examples::{at, with_priority},
};
use crate::{
    election::preemption::{HANDOVER, HOLDER_KEY, Handover, Priority},
    leadership::Term,
    lease::{LeaseRecord, LeaseUpdate},
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[path = "preemption_pause_tests.rs"]
mod pauses;

fn machine(priority: Option<Priority>) -> Machine {
    with_priority("me", priority)
}

/// A candidate that precedes "low" and a holder without a key.
fn high() -> Machine {
    machine(Some(Priority::ranked("high", ["high", "low"]).unwrap()))
}

fn held(version: u64, holder: &str, renewed: u64, annotations: &Value) -> LeaseRecord {
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 60, "leaseTransitions": 3,
                       "acquireTime": "then", "renewTime": renewed.to_string() });
    let metadata = json!({ "uid": "u", "resourceVersion": version.to_string(), "annotations": annotations });
    LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// The server's answer to a claim over `seen`.
fn written(version: u64, seen: &LeaseRecord, claim: &LeaseUpdate) -> LeaseRecord {
    let mut object = seen.with(claim).into_json();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    LeaseRecord::from_json(object).unwrap()
}

fn text(claim: &LeaseUpdate, annotation: &str) -> Option<String> {
    claim.annotations[annotation].clone()
}

#[test]
fn it_preempts_only_holders_that_it_precedes() {
    let cases = [
        (json!({ HOLDER_KEY: "low" }), true),
        (json!({ HOLDER_KEY: "" }), true),
        (json!({}), true),
        (json!(null), true),
        (json!("x"), true),
        (json!({ HOLDER_KEY: "high" }), false),
        (json!({ HOLDER_KEY: "unheard of" }), false),
        (json!({ HOLDER_KEY: "low\n" }), false),
        (json!({ HOLDER_KEY: 7 }), false),
        (json!({ HOLDER_KEY: null }), false),
        (json!({ HOLDER_KEY: ["low"] }), false),
        (json!({ HOLDER_KEY: "low".repeat(4_000_000) }), false),
        // The holder itself waits for the holder before it.
        (json!({ HOLDER_KEY: "low", HANDOVER: "from 2 to 3" }), false),
        (json!({ HOLDER_KEY: "low", HANDOVER: "from 2 to 3, done" }), true),
        (json!({ HOLDER_KEY: "low", HANDOVER: "from 1 to 2" }), true),
    ];
    for (annotations, preempts) in cases {
        let mut machine = high();
        machine.observe(held(1, "other", 0, &annotations), at(0));
        let expected = if preempts { Decision::Preempt } else { Decision::WaitUntil(at(60)) };
        assert_eq!(machine.decide(at(0), false), expected, "{:.80}", annotations.to_string());
        assert_eq!(machine.decide(at(60), false), Decision::Take);
        let mut indifferent = self::machine(None);
        indifferent.observe(held(1, "other", 0, &annotations), at(0));
        assert_eq!(indifferent.decide(at(0), false), Decision::WaitUntil(at(60)));
    }
}

#[test]
fn odd_leases_and_namesakes_are_never_preempted() {
    for duration in [json!(null), json!(-1), json!(1_000_000_000)] {
        let mut machine = high();
        let mut odd = held(1, "other", 0, &json!({})).clone().into_json();
        odd["spec"]["leaseDurationSeconds"] = duration;
        machine.observe(LeaseRecord::from_json(odd).unwrap(), at(0));
        assert!(matches!(machine.decide(at(0), false), Decision::WaitUntil(_)));
    }
    let mut machine = high();
    machine.observe(held(1, "other", 0, &json!({ HOLDER_KEY: "high" })), at(0));
    machine.observe(held(2, "me", 1, &json!({})), at(1));
    assert_eq!(machine.decide(at(1), false), Decision::WaitUntil(at(61)));
}

#[test]
fn a_preempting_candidate_waits_for_the_overtaken_holder() {
    let mut machine = high();
    let seen = held(1, "other", 0, &json!({ HOLDER_KEY: "low", "team": "a" }));
    machine.observe(seen.clone(), at(0));
    let claim = machine.acquisition(at(10), "now".into());
    assert_eq!(
        (text(&claim, HOLDER_KEY), text(&claim, HANDOVER)),
        (Some("high".into()), Some("from 3 to 4".into()))
    );
    assert_eq!((claim.transitions, claim.duration_seconds), (4, 60), "the next holder waits for both");
    let own = written(2, &seen, &claim);
    machine.observe(own.clone(), at(10));
    assert_eq!(machine.decide(at(10), false), Decision::Hold(at(60)));
    let renewal = machine.renewal(at(12), "later".into());
    assert_eq!((renewal.duration_seconds, text(&renewal, HANDOVER)), (60, Some("from 3 to 4".into())));
    // By time: counted from when this candidate saw *the other's* record.
    assert_eq!(machine.decide(at(59), false), Decision::Hold(at(60)));
    assert_eq!(machine.decide(at(60), false), Decision::Open);
    let opening = machine.renewal(at(60), "later".into());
    assert_eq!((opening.duration_seconds, text(&opening, HANDOVER)), (15, None));
    // By word.
    machine.observe(written(3, &own, &Handover::acknowledgement(&own).unwrap()), at(20));
    assert_eq!(machine.decide(at(20), false), Decision::Open);
    machine.opened();
    assert_eq!(machine.decide(at(21), true), Decision::Renew);
    assert_eq!(machine.decide(at(40), false), Decision::Take, "an interrupted term is over");
}

#[test]
fn only_the_preempted_term_is_acknowledged() {
    let mut holder = machine(None);
    holder.observe(held(1, "", 0, &json!({})), at(0));
    let claim = holder.acquisition(at(0), "now".into());
    let mine = written(2, &held(1, "", 0, &json!({})), &claim);
    let taken = |handover: &str| {
        let mut object = mine.clone().into_json();
        object["spec"]["holderIdentity"] = "other".into();
        object["spec"]["leaseTransitions"] = 5.into();
        object["metadata"]["resourceVersion"] = "3".into();
        object["metadata"]["annotations"] = json!({ HANDOVER: handover });
        LeaseRecord::from_json(object).unwrap()
    };
    for (handover, awaited) in
        [("from 4 to 5", true), ("from 4 to 5, done", false), ("from 3 to 5", false), ("from 4 to 4", false)]
    {
        holder.own.opens(Term::new("u", 4));
        holder.observe(taken(handover), at(1));
        assert_eq!(holder.own.owes_an_acknowledgement(), awaited, "{handover}");
    }
}

/// The watch shows the preemption before the candidate learns that it held the lease.
#[test]
fn a_preempted_claim_with_a_late_answer_is_acknowledged() {
    for told_by_watch in [true, false] {
        let mut holder = machine(None);
        holder.observe(held(1, "", 0, &json!({})), at(0));
        let claim = holder.acquisition(at(0), "now".into());
        let mine = written(2, &held(1, "", 0, &json!({})), &claim);
        let priority = Priority::ranked("high", ["high", "low"]).unwrap();
        let mut other = with_priority("other", Some(priority));
        other.observe(mine.clone(), at(0));
        let taken = written(3, &mine, &other.acquisition(at(0), "then".into()));
        if told_by_watch {
            holder.observe(mine.clone(), at(0));
        }
        holder.observe(taken, at(0));
        assert_eq!(holder.own.owes_an_acknowledgement(), told_by_watch);
        holder.observe(mine, at(0));
        assert!(holder.own.owes_an_acknowledgement() && !holder.is_mine());
    }
}

#[test]
fn only_a_candidate_with_a_priority_finds_a_holders_key_odd() {
    let odd = |machine: Machine, holder| {
        machine.entry.precedence.oddity(&held(1, holder, 0, &json!({ HOLDER_KEY: 7 }))).is_some()
    };
    assert!(odd(high(), "other"));
    assert!(!odd(high(), "") && !odd(machine(None), "other"));
}

/// A foreign or an old handover opens nothing.
#[test]
fn only_its_own_handover_opens_the_gate() {
    let mut machine = high();
    let seen = held(1, "other", 0, &json!({ HOLDER_KEY: "low", HANDOVER: "from 3 to 4, done" }));
    machine.observe(seen.clone(), at(0));
    let claim = machine.acquisition(at(0), "now".into());
    let own = written(2, &seen, &claim);
    machine.observe(own.clone(), at(0));
    assert_eq!(machine.decide(at(0), false), Decision::Hold(at(60)), "an old handover is overwritten");
    for (version, word) in
        (3..).zip([json!("from 2 to 4, done"), json!("from 3 to 5, done"), json!(null), json!("")])
    {
        let mut object = own.clone().into_json();
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object["metadata"]["annotations"][HANDOVER] = word.clone();
        machine.observe(LeaseRecord::from_json(object).unwrap(), at(1));
        assert_eq!(machine.decide(at(1), false), Decision::Hold(at(60)), "{word}");
    }
}

/// A swap takes effect late: the candidate read the older lease, and tried another swap.
#[test]
fn s6_a_late_preemption_still_waits() {
    for tried_again in [false, true] {
        let mut machine = high();
        let seen = held(1, "other", 0, &json!({}));
        machine.observe(seen.clone(), at(0));
        let claim = machine.acquisition(at(1), "now".into());
        machine.observe(seen.clone(), at(2));
        assert_eq!(machine.decide(at(2), false), Decision::Preempt);
        if tried_again {
            machine.acquisition(at(3), "later".into());
        }
        let own = written(2, &seen, &claim);
        machine.observe(own.clone(), at(4));
        assert!(machine.is_mine() && machine.is_current() != tried_again);
        assert!(
            machine.formers.until(at(59)) == Some(at(60)) && machine.formers.until(at(60)).is_none(),
            "it is not to be given up before"
        );
        if tried_again {
            assert_eq!(machine.decide(at(4), false), Decision::Take);
            let claim = machine.acquisition(at(4), "again".into());
            machine.observe(written(3, &own, &claim), at(4));
        }
        assert_eq!(machine.decide(at(4), false), Decision::Hold(at(60)));
    }
}

#[test]
fn the_wait_for_a_holder_survives_restart_and_deletion() {
    let mut first = high();
    let seen = held(1, "other", 0, &json!({}));
    first.observe(seen.clone(), at(0));
    let claim = first.acquisition(at(0), "now".into());
    let own = written(2, &seen, &claim);
    // An earlier process of this candidate left it.
    let mut second = high();
    second.observe(own.clone(), at(5));
    assert_eq!(second.decide(at(5), false), Decision::Take);
    let claim = second.acquisition(at(5), "again".into());
    assert_eq!(text(&claim, HANDOVER), Some("from 3 to 5".into()));
    second.observe(written(3, &own, &claim), at(5));
    assert_eq!(second.decide(at(5), false), Decision::Hold(at(65)));
    // The lease is deleted.
    first.observe(own, at(1));
    first.observe_absence(None, at(1));
    assert_eq!(first.decide(at(59), false), Decision::WaitUntil(at(60)));
    assert_eq!(first.decide(at(60), false), Decision::Take);
}

#[test]
fn a_takeover_removes_the_old_holder_key() {
    let mut plain = machine(None);
    plain.observe(held(1, "dead", 0, &json!({ HOLDER_KEY: "high" })), at(0));
    assert_eq!(plain.acquisition(at(60), "now".into()).annotations.get(HOLDER_KEY), Some(&None));
    let mut plain = machine(None);
    plain.observe(held(1, "", 0, &json!({ HOLDER_KEY: "high" })), at(0));
    assert_eq!(plain.acquisition(at(0), "now".into()).annotations.get(HOLDER_KEY), None);
    let mut releasing = high();
    releasing.observe(held(1, "me", 0, &json!({})), at(0));
    assert_eq!(releasing.release(at(0), "now".into()).unwrap().annotations.get(HOLDER_KEY), Some(&None));
}

proptest! {
    /// Rule S6 with priorities, with random steps: two candidates of this crate share one lease, and one of them gets
    /// the news late. The second leads only after the first has acknowledged or its deadline has passed.
    #[test]
    fn s6_the_gate_opens_after_the_other_ends(
        steps in prop::collection::vec((0_u64..25, 0_u8..6), 1..80),
    ) {
        let mut machine = high();
        let (mut now, mut version) = (0, 1);
        let mut lease = held(version, "other", now, &json!({ HOLDER_KEY: "low" }));
        // The other candidate renews at 60 s, and its deadline is 50 s.
        let mut deadline = Some(50);
        machine.observe(lease.clone(), at(0));
        let mut leading = false;
        for (pause, what) in steps {
            now += pause;
            version += 1;
            let others = lease.holder() == Some("other");
            match what {
                // The holder renews, if it still may.
                0 if others && deadline.is_some_and(|deadline| now < deadline) => {
                    lease = held(version, "other", now, &json!({ HOLDER_KEY: "low" }));
                    deadline = Some(now + 50);
                }
                // The other candidate learns that it was preempted, and acknowledges.
                1 if !others && deadline.is_some() && Handover::acknowledgement(&lease).is_some() => {
                    deadline = None;
                    lease = written(version, &lease, &Handover::acknowledgement(&lease).unwrap());
                }
                // Another client writes an annotation.
                2 => {
                    let mut object = lease.clone().into_json();
                    object["metadata"]["resourceVersion"] = version.to_string().into();
                    object["metadata"]["annotations"]["x"] = now.to_string().into();
                    lease = LeaseRecord::from_json(object).unwrap();
                }
                // The candidate tries, and its claim or the answer is lost.
                3 if matches!(machine.decide(at(now), leading), Decision::Preempt | Decision::Take) => {
                    machine.acquisition(at(now), format!("lost {now}"));
                    leading = false;
                }
                4 if matches!(machine.decide(at(now), leading), Decision::Preempt | Decision::Take) => {
                    if machine.record() == Some(&lease) {
                        let before = lease.clone();
                        let claim = machine.acquisition(at(now), format!("landed {now}"));
                        lease = written(version, &lease, &claim);
                        // A watch that begins again shows the state from before.
                        machine.observe(before, at(now));
                    }
                    leading = false;
                    continue; // it has not seen this yet
                }
                _ => {}
            }
            machine.observe(lease.clone(), at(now));
            version += 1;
            match machine.decide(at(now), leading) {
                Decision::Preempt | Decision::Take => {
                    let claim = machine.acquisition(at(now), now.to_string());
                    lease = written(version, &lease, &claim);
                    machine.observe(lease.clone(), at(now));
                    leading = !matches!(machine.decide(at(now), false), Decision::Hold(_));
                    if leading { machine.opened(); }
                }
                Decision::Open => {
                    let claim = machine.renewal(at(now), now.to_string());
                    lease = written(version, &lease, &claim);
                    machine.observe(lease.clone(), at(now));
                    machine.opened();
                    leading = true;
                }
                Decision::Renew | Decision::Hold(_) => {
                    let claim = machine.renewal(at(now), now.to_string());
                    lease = written(version, &lease, &claim);
                    machine.observe(lease.clone(), at(now));
                }
                Decision::Read | Decision::WaitUntil(_) => leading = false,
            }
            let other_may_write = deadline.is_some_and(|deadline| now < deadline);
            prop_assert!(!(leading && other_may_write), "at {} s: {:?}", now, lease);
        }
    }
}
