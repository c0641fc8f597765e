//! Looks of a lease that once led astray: edits by hand, copies, gaps between polls, webhooks.

use super::examples::{Stage, error, seconds, time};
use crate::{
    election::{
        hooks::LeaseCall::Renew,
        lease_watch::WatchNews,
        machine::{CLAIM, WAITS_FOR},
    },
    leadership::Intent,
    lease::ErrLockKind,
};
use serde_json::{Value, json};
use std::time::Duration;

/// The lease changes, and no watch shows it.
pub(super) fn hidden(stage: &mut Stage, change: impl FnOnce(&mut Value)) {
    stage.version += 1;
    let version = stage.version;
    let lease = stage.lease.get_or_insert_with(|| json!({ "metadata": {} }));
    change(lease);
    lease["metadata"]["resourceVersion"] = json!(version.to_string());
}

pub(super) fn no_watch(stage: &mut Stage) {
    stage.machine.handle_watch(WatchNews::Down(None), stage.now);
}

/// What client-go writes when it finds its own name in the lease: a new time, the same count.
fn goes_on_as_client_go(it: &mut Value, now: &str) {
    it["spec"]["renewTime"] = json!(now);
    it["spec"]["leaseDurationSeconds"] = json!(15);
}

fn cut_off(stage: &mut Stage, millis: u64) {
    stage.play(millis, |_, _| Err(error(ErrLockKind::Unreachable)));
}

/// A node is cut off, so a person writes the name of a standby with client-go into the lease, and it leads. A second
/// thought, and the person empties the holder. The former leader comes back, takes the empty lease for its own that was
/// freed by hand, and writes at once, beside client-go, which leads on until its own deadline.
#[test]
fn s6_emptied_lease_of_another_elector_is_not_own() {
    let mut stage = Stage::leading();
    no_watch(&mut stage);
    let now = time(stage.wall().checked_add(jiff::SignedDuration::from_secs(1)).unwrap());
    hidden(&mut stage, |lease| {
        lease["spec"]["holderIdentity"] = json!("go");
        goes_on_as_client_go(lease, &now);
    });
    hidden(&mut stage, |lease| lease["spec"]["holderIdentity"] = json!(""));
    stage.pass(seconds(6)); // client-go leads for 10 s after its last renewal
    assert!(!stage.is_open(), "two may write");
}

/// The leader of this crate is cut off, and its gate is open until its deadline. A person moves the lease to a standby with
/// client-go, which is rolled and releases. A candidate that polls sees only the release, and takes it for the word of the
/// leader that it has seen.
#[test]
fn s6_release_of_another_elector_clears_no_holder() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None); // writes until 10 s from here
    no_watch(&mut stage);
    stage.pass(10);
    let now = time(stage.wall());
    hidden(&mut stage, |lease| {
        lease["spec"]["holderIdentity"] = json!("go");
        goes_on_as_client_go(lease, &now);
    });
    let now = time(stage.wall().checked_add(jiff::SignedDuration::from_secs(1)).unwrap());
    hidden(&mut stage, |lease| {
        lease["spec"]["holderIdentity"] = json!("");
        lease["spec"]["leaseDurationSeconds"] = json!(1);
        (lease["spec"]["renewTime"], lease["spec"]["acquireTime"]) = (json!(now), json!(now));
    });
    stage.pass(seconds(5));
    assert!(!stage.is_open(), "the first may write for 5 s more");
}

/// `kubectl replace --force -f saved.yaml`, or Velero. The former leader was cut off meanwhile, and another one leads, in an
/// object made anew. The claim in the copy names its object, and must be looked at.
#[test]
fn s8_own_claim_in_another_object_is_void() {
    let mut stage = Stage::leading();
    stage.pass(seconds(5)); // a renewal has written the uid
    no_watch(&mut stage);
    let mut copy = stage.lease.clone().unwrap();
    cut_off(&mut stage, seconds(40));
    assert!(!stage.is_open());
    // Deleted; client-go makes it anew as `u2`, leads, and renews. Then the copy replaces that.
    copy["metadata"]["uid"] = json!("u3");
    hidden(&mut stage, |lease| *lease = copy);
    stage.pass(seconds(5));
    assert!(!stage.is_open(), "client-go leads until its deadline");
}

/// The same for a container that restarts.
#[test]
fn s8_earlier_claim_in_another_object_is_void() {
    let mut stage = Stage::new();
    let mut other = Stage::new();
    other.others = ("here", 20);
    other.claim("me", 77, 4, None);
    let mut copy = other.lease.clone().unwrap();
    copy["metadata"]["uid"] = json!("u3");
    stage.put(copy);
    stage.pass(seconds(5));
    assert!(!stage.is_open(), "a holder of the object before this one may write");
}

/// A policy that caps `leaseDurationSeconds` is rolled out under a leader. The answer to its renewal shows it. Other electors
/// trust the lease: client-go takes it after 5 s. Right after that answer the leader is cut off.
#[test]
fn s7_renewal_that_is_stored_otherwise_ends_the_term() {
    let mut stage = Stage::leading();
    let mut renewed = None;
    stage.play(seconds(3), |stage, call| {
        if call.what != Renew || renewed.is_some() {
            return Err(error(ErrLockKind::Unreachable));
        }
        stage.carry_out(call)?;
        hidden(stage, |lease| lease["spec"]["leaseDurationSeconds"] = json!(5));
        renewed = Some(stage.now);
        Ok(stage.record())
    });
    let since = stage.now.saturating_since(renewed.expect("a renewal"));
    let rest = Duration::from_secs(6).saturating_sub(since);
    cut_off(&mut stage, u64::try_from(rest.as_millis()).unwrap());
    assert!(!stage.is_open(), "client-go has taken the lease 1 s ago");
}

/// `kubectl annotate lease my-controller kube-leader-gate/waits-for-`, or a webhook that strips one annotation. The claim
/// stands without its list, so it vouches for whom it overtook.
#[test]
fn s6_claim_without_its_list_is_no_word() {
    let mut stage = Stage::new();
    stage.client_go("istio", 3);
    no_watch(&mut stage);
    stage.pass(10);
    // A preferred candidate takes the lease from it, and waits behind its shut gate.
    let mut other = Stage::new();
    (other.lease, other.version, other.now) = (stage.lease.clone(), stage.version, stage.now);
    other.claim("second", 8, 4, Some(&json!({ "istio": 15_000 })));
    let mut object = other.lease.unwrap();
    object["metadata"]["annotations"].as_object_mut().unwrap().remove(WAITS_FOR);
    hidden(&mut stage, |lease| *lease = object);
    stage.pass(seconds(3));
    stage.claim("", 8, 4, Some(&json!({})));
    stage.pass(seconds(2));
    assert!(!stage.is_open(), "istio writes until 15 s from its last renewal");
}

/// `kubectl patch lease my-controller --type=merge -p '{"spec":null}'`, as a "reset". The claim still stands in the
/// annotations. A replica that begins now takes the lease at once, and the leader, which polls every 26 s by default, writes
/// on.
#[test]
fn s6_wiped_lease_with_a_claim_is_not_new() {
    let mut other = Stage::new();
    other.claim("first", 7, 3, None);
    let mut wiped = other.lease.unwrap();
    wiped["spec"] = Value::Null;
    let mut newcomer = Stage::new();
    newcomer.put(wiped);
    newcomer.pass(seconds(2));
    assert!(!newcomer.is_open(), "the first has not learned of it");
}

/// The same in two steps: then the annotations go, too.
#[test]
fn s6_lease_that_is_wiped_in_two_steps_is_waited_for() {
    let mut other = Stage::new();
    other.claim("first", 7, 3, None);
    let mut wiped = other.lease.unwrap();
    wiped["spec"] = Value::Null;
    for transitions in [json!(null), json!(3)] {
        let mut newcomer = Stage::new();
        newcomer.put(wiped.clone());
        newcomer.pass(seconds(1));
        newcomer.edit(|lease| {
            lease["metadata"]["annotations"] = json!({});
            lease["spec"]["leaseTransitions"] = transitions.clone();
        });
        newcomer.pass(seconds(14));
        assert!(!newcomer.is_open(), "the first has not learned of it: {transitions}");
        newcomer.pass(seconds(2));
        assert!(newcomer.is_open(), "{transitions}");
    }
}

/// The leader has longer times than the newcomer.
#[test]
fn s6_wiped_lease_is_waited_for_as_long_as_its_claim_says() {
    let mut stage = Stage::new();
    let claim = format!("{:016x} {} u 60s - other", 7, time(stage.wall()));
    let annotations = json!({ CLAIM: claim, WAITS_FOR: "{}" });
    stage.put(json!({ "metadata": { "uid": "u", "annotations": annotations }, "spec": {} }));
    stage.pass(seconds(59));
    assert!(!stage.is_open(), "the other leads for the rest of its minute");
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

/// A person wipes the lease of a leader and puts a saved copy back, of a release before its term. A newcomer has seen nothing
/// else, so it does not know whose word that is.
#[test]
fn s6_no_release_tells_of_a_holder_that_was_not_shown() {
    let mut other = Stage::new();
    other.claim("", 7, 1, Some(&json!({})));
    let released = other.lease.clone().unwrap();
    other.claim("leader", 8, 2, Some(&json!({})));
    let mut wiped = other.lease.unwrap();
    wiped["spec"] = json!({});
    let mut newcomer = Stage::new();
    newcomer.put(wiped);
    newcomer.pass(100);
    newcomer.put(released);
    newcomer.pass(seconds(14));
    assert!(!newcomer.is_open(), "the leader has not learned of it");
    newcomer.pass(seconds(2));
    assert!(newcomer.is_open());
}

/// All replicas begin anew, and the lease does not show who held it before. Another candidate waits for that holder, takes the
/// lease, and stops soon.
#[test]
fn a_claim_tells_of_a_holder_that_was_not_shown() {
    let mut stage = Stage::new();
    stage.edit(|lease| lease["metadata"]["annotations"] = json!({ CLAIM: "of an earlier holder" }));
    stage.pass(seconds(5));
    stage.claim("other", 8, 1, Some(&json!({})));
    stage.claim("", 8, 1, Some(&json!({})));
    stage.pass(seconds(1));
    assert!(stage.is_open(), "it has waited for all before it");
}

/// It is wiped twice. Between the two a polling candidate, frozen for a moment, has missed a whole term: the spec is the same,
/// and only the claim in the annotations is another one.
#[test]
fn s6_lease_wiped_twice_does_not_say_the_same() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    no_watch(&mut stage);
    stage.fails(1, ErrLockKind::Unreachable);
    let wiped = |process: u64, now: &str| {
        let claim = format!("{process:016x} {now} u 15s - p{process}");
        json!({ "metadata": { "uid": "u", "annotations": { CLAIM: claim } }, "spec": {} })
    };
    let now = time(stage.wall());
    hidden(&mut stage, |lease| *lease = wiped(7, &now));
    stage.order(Intent::Keep); // sees it, and may not take it yet
    stage.pass(seconds(30));
    let now = time(stage.wall());
    hidden(&mut stage, |lease| *lease = wiped(8, &now));
    stage.order(Intent::Contend);
    stage.pass(seconds(5));
    assert!(!stage.is_open(), "p8 polls, and has not learned of it");
}

/// A call that waits for its place is not made yet, so a term counts from when its renewal is sent.
#[test]
fn s1_call_that_waits_for_its_place_counts_from_its_sending() {
    let mut stage = Stage::leading();
    stage.busy.is_crowded = true;
    stage.pass(seconds(5));
    assert!(stage.calls.is_empty() && stage.machine.is_due(stage.now));
    stage.busy.is_crowded = false;
    stage.pass(1);
    assert_eq!(stage.calls, [Renew]);
    assert_eq!(stage.deadline().saturating_since(stage.now), Duration::from_millis(9_999));
}

/// A candidate that polls has seen a released lease. Then, between two polls: another one takes it, and is cut off; a person
/// deletes the lease; a newcomer makes it anew and releases it. Had the poll found no lease, it would wait for the holder that
/// was never shown. It finds another object, and does not.
#[test]
fn s8_lease_made_anew_unseen_is_a_gap() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    no_watch(&mut stage);
    let now = time(stage.wall().checked_add(jiff::SignedDuration::from_secs(1)).unwrap());
    hidden(&mut stage, |lease| {
        lease["metadata"]["uid"] = json!("u2");
        (lease["spec"]["leaseTransitions"], lease["spec"]["renewTime"]) = (json!(0), json!(now));
    });
    stage.machine.handle_watch(WatchNews::Up, stage.now); // asks for a read
    no_watch(&mut stage);
    stage.pass(seconds(5));
    assert!(!stage.is_open(), "s8_a_holder_that_was_never_shown_is_waited_for");
}

/// A saved copy is older than the last renewal. While its node is cut off, the leader is succeeded; then a person puts the copy
/// back, or etcd is restored. It says a time that this process has gone past, so it is a copy, and a holder since then was
/// never shown.
#[test]
fn s6_older_claim_of_its_own_is_a_copy() {
    let mut stage = Stage::leading();
    stage.pass(seconds(5));
    let copy = stage.lease.clone().unwrap();
    stage.pass(seconds(5));
    no_watch(&mut stage);
    cut_off(&mut stage, seconds(40));
    hidden(&mut stage, |lease| *lease = copy);
    stage.pass(seconds(5));
    assert!(!stage.is_open(), "client-go leads until its deadline");
}

/// A backup of etcd is restored, in which another elector then begins a term with the number that this process's own last term
/// had. A person empties its lease, and this process takes that for its own lease that was freed by hand: two gates are open.
#[test]
fn s6_repeated_number_of_a_term_is_not_own() {
    let mut stage = Stage::leading();
    no_watch(&mut stage);
    cut_off(&mut stage, seconds(40));
    let now = time(stage.wall());
    hidden(&mut stage, |lease| {
        lease["metadata"]["annotations"] = Value::Null;
        lease["spec"] = json!({
            "holderIdentity": "", "leaseDurationSeconds": 15, "leaseTransitions": 1,
            "acquireTime": now, "renewTime": now,
        });
    });
    stage.pass(seconds(5));
    assert!(!stage.is_open(), "client-go leads until its next renewal fails");
}
