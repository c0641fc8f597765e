//! Rules S6 and S8: whom a candidate waits for behind its shut gate, and how long.

use super::examples::{Stage, error, seconds, time};
use crate::{
    election::{hooks::LeaseCall::Acquire, lease_watch::WatchNews, machine::WAITS_FOR},
    lease::{ErrLockKind, LeaseEvent},
};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};

#[test]
fn s6_whom_a_holder_waits_for_is_waited_for_here_too() {
    let mut stage = Stage::new();
    stage.claim("second", 8, 4, Some(&json!({ "first": 20_000 })));
    stage.pass(seconds(1));
    stage.claim("", 8, 4, Some(&json!({ "first": 19_000 })));
    stage.waits_as_holder(seconds(18)..seconds(20));
}

/// A list names this very process, which knows itself how its terms have ended. Or it names a process of a pod of this name,
/// which may live on.
#[test]
fn s6_listed_writer_of_this_name_and_another_process_is_waited_for() {
    for (process, opens) in [(1, true), (77, false)] {
        let mut stage = Stage::leading();
        let list = json!({ format!("me\n{process:x}"): 30_000 });
        stage.claim("second", 8, 4, Some(&list));
        stage.claim("", 8, 4, Some(&list));
        stage.pass(seconds(2));
        assert!(stage.holder() == "me" && stage.is_open() == opens, "{opens}");
        stage.pass(seconds(29));
        assert!(stage.is_open(), "{opens}");
    }
}

/// The wall clock stands still, or is behind. Each claim is later than the one before it.
#[test]
fn s6_each_claim_is_later_than_the_last_time_in_the_lease() {
    let mut stage = Stage::new();
    let last = stage.wall() + jiff::SignedDuration::from_millis(10);
    stage.edit(|lease| {
        lease["spec"] = json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3,
                             "renewTime": time(last) });
    });
    stage.now = stage.now.saturating_add(Duration::from_micros(9_999));
    assert_eq!(stage.wall(), last);
    stage.pass(0);
    let renewed = stage.record().unwrap().renew_time().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(stage.is_open() && renewed > last, "{renewed}");
}

/// A former writer is named twice, and the second time with less.
#[test]
fn s6_shorter_time_of_a_former_writer_shortens_nothing() {
    let mut stage = Stage::new();
    stage.claim("second", 8, 4, Some(&json!({ "first": 20_000 })));
    stage.claim("third", 9, 5, Some(&json!({ "first": 1_000 })));
    stage.claim("", 9, 5, Some(&json!({})));
    stage.waits_as_holder(seconds(19)..seconds(21));
}

/// Another elector reads no list, so the lease lasts as long as the gate waits, in whole seconds.
#[test]
fn s6_claim_lasts_as_long_as_its_gate_waits() {
    let mut stage = Stage::new();
    stage.claim("second", 8, 4, Some(&json!({ "first": 20_300 })));
    stage.claim("", 8, 4, Some(&json!({ "first": 20_300 })));
    stage.pass(10);
    assert_eq!(stage.record().unwrap().duration(), Some(Duration::from_secs(21)));
}

#[test]
fn s8_a_deleted_lease_of_another_is_left_to_its_holder() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(1));
    stage.delete();
    stage.pass(seconds(14));
    assert!(stage.lease.is_none());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

/// A holder that polls finds its lease deleted, and creates it anew. Another candidate was faster, so it leads. A person deletes
/// the lease again before this process reads it.
#[test]
fn s8_holder_that_has_won_the_create_and_was_never_shown_is_waited_for() {
    let mut stage = Stage::leading();
    stage.machine.handle_watch(WatchNews::Down(None), stage.now);
    stage.lease = None;
    let mut lost = false;
    stage.play(seconds(8), |stage, call| match call.what {
        Acquire if !lost => {
            lost = true;
            Err(error(ErrLockKind::Conflict))
        }
        _ => stage.carry_out(call),
    });
    assert!(lost && !stage.is_open(), "the other leads for 10 s: {:?}", stage.calls);
    stage.pass(seconds(10));
    assert!(stage.is_open());
}

/// A candidate without a watch does not see who held a lease that is gone.
#[test]
fn s8_a_holder_that_was_never_shown_is_waited_for() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    stage.machine.handle_watch(WatchNews::Down(None), stage.now);
    stage.lease = None;
    stage.pass(50);
    assert!(!stage.is_open());
    stage.pass(seconds(10));
    assert!(stage.lease.is_none());
    stage.pass(seconds(10));
    assert!(stage.is_open());
}

/// It waits behind its shut gate, is replaced again and again, and its wait ends all the same.
#[test]
fn a_wait_ends_although_its_candidate_restarts_in_a_loop() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.client_go("second", 4);
    stage.client_go("", 4);
    stage.pass(50);
    for process in 2..9 {
        let before = stage;
        stage = Stage::of(process, None);
        (stage.lease, stage.version, stage.now) = (before.lease, before.version, before.now);
        let record = stage.record().unwrap();
        stage.machine.handle_watch(WatchNews::Event(LeaseEvent::Seen(record)), stage.now);
        stage.pass(seconds(1));
        assert!(stage.holder() == "me" && !stage.is_open(), "{process}");
    }
    let list: BTreeMap<String, u64> = serde_json::from_str(&stage.annotation(WAITS_FOR).unwrap()).unwrap();
    // No process of the loop has led for long, so the last one leaves the lease to others for a period.
    stage.pass(list["first\n7"] + seconds(2));
    assert!(stage.is_open(), "within what its last claim lists");
}

#[test]
fn s4_nothing_is_released_while_a_former_writer_may_write() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.client_go("second", 4);
    stage.client_go("", 4);
    stage.pass(50);
    stage.order(crate::leadership::Intent::Leave);
    stage.pass(10);
    assert_eq!(stage.done, Some(Err("the former holder may still be writing")));
    assert_eq!(stage.holder(), "me");
}
