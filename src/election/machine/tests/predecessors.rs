//! A process that begins, and finds its own name in the lease (rule S6).

use super::examples::{Stage, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Acquire, Release},
        machine::{CLAIM, Machine, WAITS_FOR},
    },
    leadership::Intent,
    lease::{Identity, LeaseTiming},
};
use serde_json::json;

#[test]
fn s6_container_that_restarts_takes_the_lease_of_its_pod_at_once() {
    let mut stage = Stage::restarted("here", 15);
    assert_eq!(stage.machine.earlier_process(), None);
    stage.pass(10);
    assert!(stage.is_open());
    assert_eq!(stage.record().unwrap().transitions(), 5);
    // What the earlier process has sent may still land.
    stage.order(Intent::Leave);
    stage.pass(seconds(4));
    assert_eq!(stage.holder(), "me");
    stage.pass(seconds(2));
    assert!(stage.holder().is_empty() && stage.done == Some(Ok(())));
}

/// A pod of a `StatefulSet` that was deleted by force lives on beside its successor. `-` is the pod of a process that does not
/// know it.
#[test]
fn s6_pod_of_the_same_name_waits_for_its_namesake() {
    for pod in ["elsewhere", "-"] {
        let mut stage = Stage::restarted(pod, 3_600);
        assert_eq!(stage.machine.oddity(), None, "it may have ended");
        assert!(stage.machine.earlier_process().unwrap().contains("may still run"));
        stage.pass(seconds(14));
        assert!(stage.holder() == "me" && !stage.calls.contains(&Acquire), "{pod}");
        stage.claim("me", 77, 4, None);
        assert!(stage.machine.oddity().unwrap().1.contains("another process uses this identity"));
        stage.pass(seconds(14));
        assert!(!stage.is_open(), "{pod}");
        stage.pass(seconds(2));
        assert!(stage.is_open(), "{pod}");
    }
}

/// Two containers of one pod contend under different names.
#[test]
fn s6_another_name_in_this_pod_is_no_predecessor() {
    let mut stage = Stage::new();
    stage.others = ("here", 3_600);
    stage.claim("sidekick", 77, 4, None);
    assert_eq!(stage.machine.predecessor_seen(), None);
    stage.pass(seconds(14));
    assert!(!stage.is_open());
}

/// A leader that runs out of memory in its first big list. Whoever is healthy leads after the safety margin, and this process, if
/// it is the only one, a rest later.
#[test]
fn s6_lease_of_a_container_that_ended_soon_is_released_for_others() {
    let mut stage = Stage::restarted("here", 14);
    let mut other = Stage::new();
    other.machine = Machine::new(Identity::new("other").unwrap(), None, 2, None, LeaseTiming::fast());
    other.put(stage.lease.clone().unwrap());
    assert!(stage.machine.earlier_process().unwrap().contains("releases it for other"));
    stage.pass(4_990);
    assert!(stage.calls.is_empty() && !other.is_open(), "{:?}: its writes may land", stage.calls);
    stage.pass(20);
    assert_eq!(stage.calls, [Release]);
    other.put(stage.lease.clone().unwrap());
    other.pass(10);
    assert!(other.is_open(), "the release is the word of the process that has ended");
    stage.pass(1_970);
    assert!(!stage.calls.contains(&Acquire));
    stage.pass(100);
    assert!(stage.is_open(), "no other candidate has come");
}

/// A crash loop writes nothing, so the lease ends as if no process had begun.
#[test]
fn s6_crash_loop_does_not_prolong_the_lease() {
    let mut lease = Stage::restarted("here", 3).lease.unwrap();
    for _ in 0..5 {
        let mut stage = Stage::new();
        stage.put(lease);
        stage.pass(seconds(3));
        assert_eq!(stage.calls, []);
        lease = stage.lease.unwrap();
    }
    assert!(lease["metadata"]["annotations"][CLAIM].as_str().unwrap().starts_with("000000000000004d "));
}

/// It renews once more, so it has not ended, or its renewal was late. Both look the same.
#[test]
fn s6_earlier_container_that_renews_is_waited_for() {
    for held in [1, 20] {
        let mut stage = Stage::restarted("here", held);
        stage.claim("me", 77, 4, None); // a millionth of a second later
        let (_, trouble) = stage.machine.oddity().unwrap();
        assert!(trouble.contains("another process uses this identity"), "{trouble}");
        stage.pass(seconds(14));
        assert!(!stage.is_open() && stage.holder() == "me", "{held}");
        stage.pass(seconds(2));
        assert!(stage.is_open(), "{held}");
    }
}

/// The times in the lease count, and both are of one process: no clock of this one is compared with them.
#[test]
fn s6_odd_times_of_a_predecessor_prove_no_long_term() {
    for acquired in [json!(null), json!("soon"), json!("2099-01-01T00:00:00.000000Z")] {
        let mut lease = Stage::restarted("here", 20).lease.unwrap();
        lease["spec"]["acquireTime"] = acquired.clone();
        let mut stage = Stage::new();
        stage.put(lease);
        stage.pass(seconds(3));
        assert_eq!(stage.calls, [], "{acquired}");
    }
}

#[test]
fn s6_writers_of_a_predecessor_are_waited_for() {
    let mut lease = Stage::restarted("here", 20).lease.unwrap();
    lease["metadata"]["annotations"][WAITS_FOR] = json!(r#"{"first":8000}"#);
    let mut stage = Stage::new();
    stage.put(lease);
    stage.waits_as_holder(seconds(7)..seconds(9));
}

/// It is shown only after the lease of another candidate, so it is of a process that lived while this one did.
#[test]
fn s6_claim_of_this_pod_that_comes_later_is_no_predecessors() {
    let mut stage = Stage::new();
    stage.claim("other", 7, 3, None);
    stage.others = ("here", 20);
    stage.claim("me", 77, 4, None);
    stage.pass(seconds(10));
    assert!(!stage.is_open() && stage.holder() == "me");
    assert_eq!(stage.machine.predecessor_seen(), None);
}

/// Its deletion leaves nobody to wait for: the predecessor has ended.
#[test]
fn s8_deleted_lease_of_a_predecessor_is_made_anew_at_once() {
    let mut stage = Stage::restarted("here", 3);
    stage.delete();
    stage.pass(seconds(1));
    assert!(stage.is_open(), "{:?}", stage.calls);
}

/// A program builds two elections with one identity on one lease. It says so at once, and the first one leads on.
#[test]
fn s6_other_election_of_this_process_is_no_predecessor() {
    let mut stage = Stage::new();
    stage.machine = stage.machine.clone().beside(|number| number == 77);
    stage.put(Stage::restarted("here", 3_600).lease.unwrap());
    let (_, trouble) = stage.machine.oddity().unwrap();
    assert!(trouble.contains("another election of this process uses this identity"), "{trouble}");
    assert_eq!(stage.machine.earlier_process(), None);
    stage.pass(seconds(14));
    assert!(stage.holder() == "me" && !stage.calls.contains(&Acquire), "{:?}", stage.calls);
}
