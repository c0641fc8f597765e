//! A gate that closes while writes begin, what others undo, and words for people.

use super::{
    examples::{Stage, error, seconds},
    odd_looks::{hidden, no_watch},
};
use crate::{
    election::{
        hooks::LeaseCall::{Ask, Read, Release},
        machine::{ASKED, Busy, CLAIM, Gate, Next},
    },
    leadership::Intent,
    lease::ErrLockKind,
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The comparison of a priority may change its answer. Here it does between the look at the writes and the poll. `poll` both
/// decides that the gate closes and releases, with a count of writes that was taken while the gate was open: a write that
/// another thread begins meanwhile is not in it. (`Task::run` does the same with the intent: it tells the machine after it has
/// applied the gate, and counts the writes before it applies it again.)
#[test]
fn s4_poll_that_closes_the_gate_releases_nothing() {
    let objects = Arc::new(AtomicBool::new(true));
    let precedes = objects.clone();
    let mut stage = Stage::preferred("2", move |_| precedes.load(Ordering::SeqCst));
    stage.pass(50);
    stage.annotate(ASKED, "other\n3");
    stage.pass(10);
    assert!(stage.is_open());
    let counted_while_open = Busy::default();
    objects.store(false, Ordering::SeqCst);
    let wall = stage.wall();
    let next = stage.machine.poll(counted_while_open, wall, stage.now);
    assert!(
        !matches!(&next, Next::Call(call) if call.what == Release),
        "it releases, and the writes behind the closed gate were not counted"
    );
}

/// The task makes the gate what it has to be before it counts the writes.
#[test]
fn s4_gate_closes_before_writes_are_counted() {
    let mut stage = Stage::leading();
    stage.give_way();
    assert!(matches!(stage.gate(), Gate::Closing { .. }));
    let wall = stage.wall();
    let under_way = Busy { writes: true, ..Busy::default() };
    let next = stage.machine.poll(under_way, wall, stage.now);
    assert!(!matches!(&next, Next::Call(call) if call.what == Release));
}

// --- liveness ---

/// A preferred candidate asks, and leading-only work needs its grace of 12 s, which is longer than the term.
#[test]
fn late_work_keeps_no_lease_from_the_asker() {
    let mut stage = Stage::leading();
    stage.annotate(ASKED, "other\n2");
    assert!(matches!(stage.gate(), Gate::Closing { .. }));
    stage.order(Intent::Keep);
    stage.pass(seconds(12));
    stage.order(Intent::Contend);
    stage.pass(seconds(1));
    assert!(!stage.is_open(), "it leads again");
}

/// A claim with an absurd duration, from a bug or by hand. A replica that begins waits for ever, and says nothing.
#[test]
fn absurd_claim_is_cut() {
    let mut other = Stage::new();
    other.claim("other", 7, 3, None);
    let mut object = other.lease.unwrap();
    let claim = object["metadata"]["annotations"][CLAIM]
        .as_str()
        .unwrap()
        .replace(" 15s ", " 18446744073709551615s ");
    object["metadata"]["annotations"][CLAIM] = json!(claim);
    let mut stage = Stage::new();
    stage.put(object);
    stage.pass(seconds(2 * 24 * 60 * 60));
    assert!(stage.is_open() || stage.machine.oddity().is_some(), "it waits for ever, without a word");
}

// --- storms ---

/// The lease is in git with an empty spec, and a controller with self-heal reverts each write within milliseconds.
#[test]
fn reverted_claims_make_no_storm() {
    for kind in ["the spec is wiped", "the holder is emptied", "the lease is deleted"] {
        let mut stage = Stage::new();
        let mut reverts = false;
        for _ in 0..10_000 {
            stage.pass(1);
            if stage.holder() == "me" {
                match kind {
                    "the spec is wiped" => stage.edit(|lease| lease["spec"] = json!({})),
                    "the holder is emptied" => {
                        stage.edit(|lease| lease["spec"]["holderIdentity"] = json!(""));
                    }
                    _ => stage.delete(),
                }
                reverts = true;
            }
        }
        let calls = stage.calls.len();
        assert!(
            reverts && calls < 100,
            "{kind}: {calls} calls in ten seconds, and each is answered by a revert"
        );
    }
}

/// Two servers behind one address lag, each at another state of the lease, both free. Each read shows another state than the
/// last one, so each forgets the failures.
#[test]
fn old_reads_in_turn_make_no_storm() {
    let mut stage = Stage::new();
    no_watch(&mut stage);
    let old: Vec<_> = [3, 5]
        .map(|transitions| {
            let mut it = Stage::new();
            it.client_go("", transitions);
            it.record().unwrap()
        })
        .into();
    let mut turn = 0;
    stage.play(seconds(10), |stage, call| {
        stage.now = stage.now.saturating_add(Duration::from_millis(2));
        if call.what == Read {
            turn += 1;
            return Ok(Some(old[turn % 2].clone()));
        }
        Err(error(ErrLockKind::Conflict))
    });
    let calls = stage.calls.len();
    assert!(calls < 100, "{calls} calls in ten seconds");
}

// --- wrong trouble ---

/// A pod of a `StatefulSet` had client-go (or the former core) as its elector, and is upgraded to this crate: the lease names
/// it, without a claim. Or a person has written its name. There is no other process.
#[test]
fn own_name_without_a_claim_is_no_second_process() {
    let mut stage = Stage::new();
    stage.client_go("me", 4);
    stage.pass(100);
    let trouble = stage.machine.oddity().map(|(_, text)| text).unwrap_or_default();
    assert!(!trouble.contains("another process uses this identity"), "{trouble}");
}

/// A webhook has stripped the question of a preferred candidate, and is gone now. The candidate is not preferred any more (its
/// setting has changed), and client-go leads for months.
#[test]
fn altered_question_is_no_trouble_of_claims() {
    let wants = Arc::new(AtomicBool::new(true));
    let precedes = wants.clone();
    let mut stage = Stage::preferred("2", move |_| precedes.load(Ordering::SeqCst));
    stage.client_go("go", 3);
    stage.play(200, |stage, call| {
        let answer = stage.carry_out(call);
        if call.what == Ask {
            hidden(stage, |lease| {
                drop(lease["metadata"]["annotations"].as_object_mut().unwrap().remove(ASKED));
            });
            return Ok(stage.record());
        }
        answer
    });
    wants.store(false, Ordering::SeqCst);
    for _ in 0..1_000 {
        stage.client_go("go", 3);
        stage.pass(seconds(2));
    }
    assert_eq!(stage.machine.oddity(), None, "it says that it cannot lead");
}

/// etcd is restored to a time before the lease. The create is carried out at a lower version than the last one known, and is
/// taken for the work of a webhook.
#[test]
fn restored_backup_is_no_webhook() {
    let mut stage = Stage::leading();
    no_watch(&mut stage);
    stage.pass(seconds(5));
    (stage.lease, stage.version) = (None, 50);
    let mut troubles = vec![];
    stage.play(seconds(3), |stage, call| {
        troubles.extend(stage.machine.oddity());
        stage.carry_out(call)
    });
    assert!(troubles.is_empty(), "{troubles:?}");
}
