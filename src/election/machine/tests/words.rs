//! Rule S6: what is believed as a word that a holder has stopped, and what is not.

use super::examples::{Stage, error, seconds, time};
use crate::{
    election::{lease_watch::WatchNews, machine::WAITS_FOR},
    lease::{ErrLockKind, LeaseEvent},
};
use serde_json::{Value, json};
use std::time::Duration;

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
    stage.opens_within(seconds(13)..seconds(15));
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

/// A person writes what a release looks like. It is not later than the claim before it, so it is no word of the holder.
#[test]
fn s6_word_with_the_time_of_the_claim_clears_no_holder() {
    let mut stage = Stage::new();
    stage.claim("first", 7, 3, None);
    stage.edit(|lease| {
        lease["spec"]["holderIdentity"] = json!("");
        lease["spec"]["leaseDurationSeconds"] = json!(1);
    });
    stage.waits_as_holder(seconds(14)..seconds(16));
}

/// A polling candidate has missed a whole term of client-go: the release that it sees is of the second holder.
#[test]
fn s6_the_release_of_a_later_term_clears_no_earlier_holder() {
    let mut stage = Stage::new();
    stage.client_go("first", 3);
    stage.pass(seconds(1));
    stage.client_go("", 4);
    stage.waits_as_holder(50..15_050);
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
    stage.edit(|lease| {
        lease["spec"]["holderIdentity"] = json!("");
        lease["spec"]["leaseDurationSeconds"] = json!(2);
        lease["spec"]["renewTime"] = json!(now);
    });
    stage.waits_as_holder(seconds(14)..seconds(16));
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
    stage.waits_as_holder(50..15_050);
}

/// A claim of this process has no answer, another holder follows, and a person writes a copy of that claim over it.
#[test]
fn s6_a_copy_of_an_own_claim_does_not_vouch_for_a_later_holder() {
    let mut stage = Stage::new();
    let record = stage.record().unwrap();
    stage.machine.handle_watch(WatchNews::Event(LeaseEvent::Seen(record.clone())), stage.now);
    let claim = stage.call();
    let copy = record.with(&claim.update.unwrap()).into_json();
    let _ = stage.machine.handle_answer(Err(error(ErrLockKind::Timeout)), stage.now);
    let earlier = time(stage.wall() - jiff::SignedDuration::from_secs(1));
    stage.edit(|lease| {
        lease["spec"] = json!({ "holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                             "acquireTime": earlier, "renewTime": earlier });
    });
    stage.put(copy);
    stage.waits_as_holder(seconds(14)..seconds(16));
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
    stage.opens_within(50..15_050);
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
