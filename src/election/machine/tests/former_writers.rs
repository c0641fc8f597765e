//! Rule S6 and its kin: candidates wait for each holder, unless a word says that it has stopped.

use super::examples::{Stage, error, seconds, time};
use crate::{
    election::{hooks::LeaseCall::Acquire, lease_watch::WatchNews, machine::WAITS_FOR},
    lease::{ErrLockKind, LeaseEvent},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

#[test]
fn s6_a_silent_holder_is_succeeded_at_the_instant_of_its_expiry() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(15) - 1);
    assert!(!stage.calls.contains(&Acquire));
    stage.pass(6);
    assert!(stage.is_open());
}

#[test]
fn s6_each_renewal_begins_the_wait_anew() {
    let mut stage = Stage::new();
    for _ in 0..5 {
        stage.client_go("other", 3);
        stage.pass(seconds(14));
    }
    assert!(!stage.calls.contains(&Acquire));
}

#[test]
fn s6_the_recorded_duration_counts() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.edit(|it| it["spec"]["leaseDurationSeconds"] = json!(40));
    stage.pass(seconds(39));
    assert!(!stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

#[test]
fn s6_a_duration_that_is_edited_ends_nothing_early() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(3));
    stage.edit(|it| it["spec"]["leaseDurationSeconds"] = json!(1));
    stage.pass(seconds(14));
    assert!(!stage.is_open());
}

/// A person writes another holder into the lease, and for how long. The claim speaks of the holder before it.
#[test]
fn s6_the_duration_of_a_holder_that_a_person_writes_counts() {
    let mut stage = Stage::leading();
    stage.edit(|it| {
        it["spec"]["holderIdentity"] = json!("outsider");
        it["spec"]["leaseDurationSeconds"] = json!(3_600);
    });
    stage.pass(seconds(3_599));
    assert!(!stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

/// The claim itself says how long its holder counts on it, so a newcomer is not misled either.
#[test]
fn s6_a_newcomer_reads_the_duration_of_the_claim() {
    let mut stage = Stage::new();
    stage.claim("other", 7, 3, None);
    let mut object = stage.lease.clone().unwrap();
    object["spec"]["leaseDurationSeconds"] = json!(1);
    let mut newcomer = Stage::new();
    newcomer.put(object);
    newcomer.pass(seconds(14));
    assert!(!newcomer.is_open());
}

#[test]
fn a_release_is_taken_at_once() {
    for by_this_crate in [true, false] {
        let mut stage = Stage::new();
        stage.client_go("other", 3);
        stage.pass(seconds(1));
        if by_this_crate {
            stage.claim("", 7, 3, None);
        } else {
            stage.client_go("", 3);
        }
        stage.pass(6);
        assert!(stage.is_open());
    }
}

/// A person who empties the holder leaves its duration. Its process may write on.
#[test]
fn s6_a_lease_that_a_person_empties_is_waited_for() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(1));
    stage.edit(|it| it["spec"]["holderIdentity"] = json!(""));
    stage.pass(seconds(14));
    assert!(!stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

#[test]
fn a_holder_takes_back_at_once_what_a_person_has_emptied() {
    let mut stage = Stage::leading();
    stage.pass(100);
    stage.edit(|it| it["spec"]["holderIdentity"] = json!(""));
    assert!(!stage.is_open());
    stage.pass(5);
    assert!(stage.is_open());
    assert_eq!(stage.annotation(WAITS_FOR).unwrap(), "{}", "its own writes are its own");
}

/// A polling candidate may see only that client-go has taken a lease that a person had freed: its former holder lives.
#[test]
fn s6_the_holder_before_client_go_is_waited_for() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.pass(seconds(1));
    stage.client_go("second", 4);
    stage.client_go("", 4);
    stage.pass(50);
    assert!(stage.holder() == "me" && !stage.is_open(), "the lease is held, and the gate is shut");
    let list = stage.annotation(WAITS_FOR).unwrap();
    assert!(list.contains("first") && !list.contains("second"), "{list}");
    stage.pass(seconds(13));
    assert!(!stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

/// A candidate of this crate says whom it waits for. So its claim vouches for whom it does not list.
#[test]
fn s6_the_claim_of_this_crate_vouches_for_the_holder_before_it() {
    for (list, opens) in [(None, true), (Some(json!({ "first": 9_000 })), false)] {
        let mut stage = Stage::new();
        stage.claim("first", 7, 3, None);
        stage.pass(seconds(1));
        stage.claim("second", 8, 4, list.as_ref());
        stage.claim("", 8, 4, list.as_ref());
        stage.pass(50);
        assert_eq!(stage.is_open(), opens, "{list:?}");
        stage.pass(seconds(15));
        assert!(stage.is_open());
    }
}

#[test]
fn s6_whom_a_holder_waits_for_is_waited_for_here_too() {
    let mut stage = Stage::new();
    stage.claim("second", 8, 4, Some(&json!({ "first": 20_000 })));
    stage.pass(seconds(1));
    stage.claim("", 8, 4, Some(&json!({ "first": 19_000 })));
    stage.pass(seconds(18));
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
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

/// A person writes what a release looks like. It is not later than the claim before it, so it is no word of the holder.
#[test]
fn s6_word_with_the_time_of_the_claim_clears_no_holder() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.edit(|it| {
        it["spec"]["holderIdentity"] = json!("");
        it["spec"]["leaseDurationSeconds"] = json!(1);
    });
    stage.pass(seconds(14));
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

/// The wall clock stands still, or is behind. Each claim is later than the one before it.
#[test]
fn s6_each_claim_is_later_than_the_last_time_in_the_lease() {
    let mut stage = Stage::new();
    let last = stage.wall() + jiff::SignedDuration::from_millis(10);
    stage.edit(|it| {
        it["spec"] = json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3,
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
    stage.pass(seconds(19));
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

/// A polling candidate has missed a whole term of client-go: the release that it sees is of the second holder.
#[test]
fn s6_the_release_of_a_later_term_clears_no_earlier_holder() {
    let mut stage = Stage::new();
    stage.client_go("first", 3);
    stage.pass(seconds(1));
    stage.client_go("", 4);
    stage.pass(50);
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.pass(seconds(15));
    assert!(stage.is_open());
}

/// It has missed a holder between two claims. The second claim does not speak of the holder before the missed one.
#[test]
fn s6_a_claim_vouches_only_for_the_holder_just_before_it() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.pass(seconds(1));
    stage.claim("third", 9, 5, None);
    stage.claim("", 9, 5, None);
    stage.pass(50);
    let list = stage.annotation(WAITS_FOR).unwrap();
    assert!(list.contains("first") && !list.contains("third") && !stage.is_open(), "{list}");
}

/// A person empties the holder, and writes a short duration and the time of the edit.
#[test]
fn s6_an_edit_with_a_later_time_is_no_release() {
    let mut stage = Stage::new();
    stage.client_go("other", 3);
    stage.pass(seconds(1));
    let now = time(stage.wall());
    stage.edit(|it| {
        it["spec"]["holderIdentity"] = json!("");
        it["spec"]["leaseDurationSeconds"] = json!(2);
        it["spec"]["renewTime"] = json!(now);
    });
    stage.pass(seconds(14));
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
}

/// Two backups are written over the lease: a claim, and then the release that came after it. Both are older than the holder.
#[test]
fn s6_a_restored_release_after_a_restored_claim_is_no_word() {
    let mut backups = Stage::new();
    backups.client_go("other", 3);
    let claim = backups.lease.clone().unwrap();
    backups.pass(seconds(1));
    backups.client_go("", 3);
    let mut stage = Stage::new();
    stage.now = stage.now.saturating_add(Duration::from_secs(2));
    stage.client_go("other", 3);
    stage.put(claim);
    stage.put(backups.lease.unwrap());
    stage.pass(50);
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.pass(seconds(15));
    assert!(stage.is_open());
}

/// A claim of this process has no answer, another holder follows, and a person writes a copy of that claim over it.
#[test]
fn s6_a_copy_of_an_own_claim_does_not_vouch_for_a_later_holder() {
    let mut stage = Stage::new();
    let record = stage.record().unwrap();
    stage.machine.watched(WatchNews::Event(LeaseEvent::Seen(record.clone())), stage.now);
    let claim = stage.call();
    let copy = record.with(&claim.update.unwrap()).into_json();
    let _ = stage.machine.answered(Err(error(ErrLockKind::Timeout)), stage.now);
    let earlier = time(stage.wall() - jiff::SignedDuration::from_secs(1));
    stage.edit(|it| {
        it["spec"] = json!({ "holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                             "acquireTime": earlier, "renewTime": earlier });
    });
    stage.put(copy);
    stage.pass(seconds(14));
    assert!(stage.holder() == "me" && !stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open());
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

/// A list that makes no sense vouches for no holder.
#[test]
fn s6_a_spoilt_list_makes_a_claim_one_of_another_elector() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.claim("second", 8, 4, None);
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.pass(seconds(1));
    stage.claim("second", 8, 4, Some(&Value::Null));
    stage.client_go("", 4);
    stage.pass(50);
    assert!(!stage.is_open());
}

/// A backup that is written over the lease shows a release that is long past.
#[test]
fn s6_a_restored_copy_of_a_release_is_no_word() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    let old = stage.lease.clone().unwrap();
    let mut stage = Stage::new();
    stage.pass(seconds(1));
    let mut stage = {
        stage.lease = None;
        stage
    };
    stage.put(old.clone());
    stage.now = stage.now.saturating_add(std::time::Duration::from_millis(1));
    stage.client_go("other", 3);
    stage.put(old);
    stage.pass(50);
    assert!(!stage.is_open());
    stage.pass(seconds(15));
    assert!(stage.is_open());
}

/// A lease that is made anew from a saved copy names a holder that was deleted with it. No candidate knows who held the object
/// before it was shown.
#[test]
fn s8_a_copy_in_another_object_is_no_claim() {
    let mut stage = Stage::leading();
    let mut copy = stage.lease.clone().unwrap();
    stage.delete();
    copy["metadata"]["uid"] = json!("another");
    stage.put(copy);
    assert!(!stage.is_open());
    stage.pass(seconds(14));
    assert!(!stage.is_open());
    stage.pass(seconds(2));
    assert!(stage.is_open(), "it is claimed anew");
    assert_eq!(stage.record().unwrap().transitions(), 2);
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

/// A candidate without a watch does not see who held a lease that is gone.
#[test]
fn s8_a_holder_that_was_never_shown_is_waited_for() {
    let mut stage = Stage::new();
    stage.client_go("", 3);
    stage.machine.watched(WatchNews::Down(None), stage.now);
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
        stage.machine.watched(WatchNews::Event(LeaseEvent::Seen(record)), stage.now);
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
