//! Leases that this candidate must not take back, and claims that are not its own.

use super::examples::{Stage, error, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Acquire, Release},
        lease_watch::WatchNews,
        machine::{ASKED, CLAIM, Machine},
    },
    leadership::{Intent, Term},
    lease::{ErrLockKind, Identity, LeaseTiming},
};
use serde_json::json;
use std::time::Duration;

/// A write hangs until the deadline, so the lease of the one that gives way is left to expire. Another candidate saw the
/// last claim some milliseconds later.
#[test]
fn term_that_is_given_away_and_runs_out_is_left_to_others() {
    let mut stage = Stage::leading();
    let mut other = Stage::new();
    other.machine = Machine::new(Identity::new("other").unwrap(), None, 2, None, LeaseTiming::fast());
    other.now = stage.now.saturating_add(Duration::from_millis(20));
    other.machine.handle_watch(WatchNews::Up, other.now);
    other.put(stage.lease.clone().unwrap());
    stage.busy.writes = true;
    stage.give_way();
    stage.pass(seconds(10)); // past the deadline: the write is cut off
    stage.busy.writes = false;
    stage.busy.settle_at = stage.now.saturating_add(Duration::from_secs(5));
    assert!(!stage.is_open());
    // 20 ms after the lease's end the other one would take it.
    stage.pass(seconds(6));
    other.pass(seconds(15) - 1);
    assert!(
        !stage.is_open(),
        "it took the lease that it gave away, before the others could: {:?}",
        stage.calls
    );
}

/// A person moves leadership to `other`. The holder's container restarts before it has seen the question.
#[test]
fn container_that_restarts_obeys_a_question() {
    let mut lease = Stage::restarted("here", 3_600).lease.unwrap();
    lease["metadata"]["annotations"][ASKED] = json!("other");
    let mut stage = Stage::new();
    stage.put(lease);
    assert_eq!(stage.machine.earlier_process(), None, "it was held for long enough");
    stage.pass(seconds(7));
    assert!(
        !stage.calls.contains(&Acquire) && stage.annotation(ASKED).is_some(),
        "{:?} {:?}",
        stage.calls,
        stage.annotation(ASKED)
    );
}

/// The same for a holder whose term has run out in an outage.
#[test]
fn holder_whose_term_has_run_out_obeys_a_question() {
    let mut stage = Stage::leading();
    stage.machine.handle_watch(WatchNews::Down(None), stage.now);
    stage.play(seconds(11), |_, _| Err(error(ErrLockKind::Timeout)));
    assert!(!stage.is_open());
    stage.lease.as_mut().unwrap()["metadata"]["annotations"][ASKED] = json!("other");
    stage.version += 1;
    let version = stage.version;
    stage.lease.as_mut().unwrap()["metadata"]["resourceVersion"] = json!(version.to_string());
    stage.calls.clear();
    stage.machine.handle_watch(WatchNews::Up, stage.now);
    stage.pass(seconds(2));
    assert!(!stage.is_open() && stage.annotation(ASKED).is_some(), "{:?}", stage.calls);
}

/// A late order for another term.
#[test]
fn late_order_for_another_term_takes_no_lease_of_a_predecessor() {
    let mut stage = Stage::restarted("here", 3);
    stage.machine.give_way(&Term::new("u", 3));
    stage.pass(seconds(4));
    assert!(!stage.calls.contains(&Acquire), "{:?}", stage.calls);
}

/// A term that is given back has run out; then an order for an earlier term comes late.
#[test]
fn late_order_for_an_earlier_term_takes_nothing_back() {
    let mut stage = Stage::leading();
    let [_, earlier] = stage.terms();
    stage.order(Intent::Keep);
    stage.give_way();
    stage.pass(seconds(11));
    assert!(!stage.is_open());
    stage.machine.give_way(&earlier);
    stage.order(Intent::Contend);
    stage.calls.clear();
    stage.pass(1_000);
    assert!(!stage.calls.contains(&Acquire), "{:?}", stage.calls);
}

/// A webhook caps the duration from below (5 s), so a release is stored in another form. The other candidates wait for it.
/// The one that gives way takes the lease back at once.
#[test]
fn release_that_is_stored_otherwise_is_followed_by_a_rest() {
    let mut stage = Stage::leading();
    stage.give_way();
    stage.play(1_900, |stage, call| {
        stage.carry_out(call)?;
        if call.what == Release {
            stage.lease.as_mut().unwrap()["spec"]["leaseDurationSeconds"] = json!(5);
        }
        Ok(stage.record())
    });
    assert!(!stage.is_open(), "it rests for a retry period: {:?}", stage.calls);
}

/// An earlier container (77) held the lease in the term 1, and this process has
/// taken it over. Somebody wipes the spec, so its next term has the number 1 again. Then somebody puts back a saved copy of the
/// lease, with the claim of 77. S7: the lease no longer holds a claim of this process, so its term is over.
#[test]
fn s7_claim_of_a_predecessor_is_none_of_this_process() {
    let mut stage = Stage::new();
    stage.others = ("here", 20);
    stage.claim("me", 77, 1, None);
    let saved = stage.lease.clone().unwrap();
    stage.pass(10);
    assert!(stage.is_open() && stage.record().unwrap().transitions() == 2);
    stage.edit(|lease| lease["spec"] = json!({}));
    stage.pass(seconds(16));
    assert!(stage.is_open() && stage.record().unwrap().transitions() == 1, "{:?}", stage.lease);
    stage.put(saved);
    assert!(!stage.is_open(), "the lease holds the claim of process 77: {:?}", stage.annotation(CLAIM));
}

/// What comes of it: others may have led since the copy was saved. The lease was emptied in the form of a release, another
/// candidate leads in the term 2 and has not seen the copy yet. This process, without a watch, has not seen the other one.
#[test]
fn s6_copy_of_a_predecessors_claim_is_not_renewed() {
    let mut stage = Stage::new();
    stage.others = ("here", 20);
    stage.claim("me", 77, 1, None);
    let saved = stage.lease.clone().unwrap();
    stage.pass(10);
    stage.edit(|lease| lease["spec"] = json!({}));
    stage.pass(seconds(16));
    assert!(stage.is_open());
    stage.calls.clear();
    // Unseen by this one, the lease went to `other` in the term 2. Then somebody puts back the copy.
    stage.version += 5;
    let mut copy = saved;
    copy["metadata"]["resourceVersion"] = json!((stage.version).to_string());
    stage.lease = Some(copy);
    stage.pass(seconds(4));
    assert!(!stage.is_open() || stage.calls.contains(&Acquire), "it renews a copy: {:?}", stage.calls);
}

/// `x` (process 77) leads, and this candidate has seen it. A person deletes the lease. A new process of the same name in
/// another pod (88, the successor in a `StatefulSet` of a pod that was deleted by force) has never seen 77. It makes the lease
/// anew, and stops in order. Its release is no word of 77.
#[test]
fn s6_release_of_a_namesake_is_no_word_of_a_former_writer() {
    let mut stage = Stage::new();
    stage.claim("x", 77, 4, None);
    stage.pass(100);
    stage.claim("x", 77, 4, None); // its deadline is 10 s from here, and its lease's end 15 s
    stage.delete();
    stage.pass(600);
    stage.claim("x", 88, 0, None);
    stage.pass(1_000);
    // Its release.
    let time = super::examples::time(stage.wall());
    stage.edit(|lease| {
        lease["spec"] = json!({
            "leaseDurationSeconds": 1, "acquireTime": time, "renewTime": time, "leaseTransitions": 0,
        });
        let uid = lease["metadata"]["uid"].as_str().unwrap().to_owned();
        lease["metadata"]["annotations"][CLAIM] = json!(format!("{:016x} {time} {uid} 15s elsewhere x", 88));
    });
    stage.pass(1_000);
    assert!(!stage.is_open(), "process 77 may write for another 7 s: {:?}", stage.calls);
    stage.pass(seconds(15));
    assert!(stage.is_open());
}
