//! Rule S4: what a drain and an end know of the writes.

use super::*;
use loom::thread;
use std::pin::pin;

/// The ways to close the gate before a drain.
const CLOSES: [fn(&Grantor); 3] = [Grantor::close, |it| it.closer().seal(), |it| it.revoke(Loss::Released)];

/// If a drain has seen no admitted write, then each write without an answer is in `unanswered`.
#[test]
fn s4_a_drain_knows_every_write_without_an_answer() {
    for close in CLOSES {
        loom::model(move || {
            let (grantor, leadership, _grant) = leading(ticking());
            // When the writer last sent something. Relaxed, so that only the gate's own orderings show it.
            let sent = Arc::new(AtomicU64::new(0));
            let writer = {
                let (leadership, sent) = (leadership.clone(), sent.clone());
                thread::spawn(move || {
                    if let Some(write) = leadership.admit() {
                        sent.store(leadership.now().as_nanos(), Ordering::Relaxed);
                        drop(write);
                    }
                })
            };
            close(&grantor);
            let (woken, mut idle) = (Arc::new(Woken::default()), pin!(leadership.idle()));
            let drained = woken.poll(idle.as_mut());
            let known = || {
                let sent = sent.load(Ordering::Relaxed);
                assert!(sent == 0 || leadership.unanswered() >= Some(at(sent)), "a write is forgotten");
            };
            if drained {
                known();
            }
            writer.join().unwrap();
            assert!(drained || woken.get() && woken.poll(idle.as_mut()), "the drain waits for ever");
            known();
            assert!(leadership.admit().is_none());
        });
    }
}

/// What is found quiet stays quiet, whoever closes the gate.
#[test]
fn s4_a_quiet_gate_admits_no_write_and_has_none_under_way() {
    for close in CLOSES {
        loom::model(move || {
            let (grantor, leadership, _grant) = leading(Arc::new(Still));
            let writer = {
                let leadership = leadership.clone();
                thread::spawn(move || leadership.admit())
            };
            let looker = {
                let leadership = leadership.clone();
                thread::spawn(move || leadership.is_quiet())
            };
            close(&grantor);
            let is_quiet = looker.join().unwrap();
            let write: Option<WritePermit> = writer.join().unwrap();
            assert!(!(is_quiet && write.is_some()), "a write that is under way is missed");
            assert!(write.is_some() || leadership.is_quiet());
        });
    }
}

/// Two writes end, one with an answer and one without. The drain wakes, and knows of the second.
#[test]
fn s4_the_last_of_two_writes_wakes_the_drain() {
    most_orders(3, || {
        let (grantor, leadership, _grant) = leading(ticking());
        let writer = |answered| {
            let leadership = leadership.clone();
            thread::spawn(move || {
                let write = leadership.admit();
                let admitted = write.is_some();
                if let Some(mut write) = write.filter(|_| answered) {
                    write.answered();
                }
                admitted
            })
        };
        let (answered, unanswered) = (writer(true), writer(false));
        grantor.close();
        let (woken, mut idle) = (Arc::new(Woken::default()), pin!(leadership.idle()));
        let drained = woken.poll(idle.as_mut());
        answered.join().unwrap();
        let unanswered = unanswered.join().unwrap();
        assert!(drained || woken.get() && woken.poll(idle.as_mut()), "the drain waits for ever");
        assert_eq!(leadership.unanswered().is_some(), unanswered);
    });
}

/// A clean stop after answered writes has nothing to wait for.
#[test]
fn s4_an_answered_write_is_not_unanswered() {
    for close in CLOSES {
        loom::model(move || {
            let (grantor, leadership, grant) = leading(Arc::new(Still));
            let writer = {
                let leadership = leadership.clone();
                thread::spawn(move || {
                    if let Some(mut write) = leadership.admit() {
                        write.answered();
                    }
                })
            };
            close(&grantor);
            grant.end(Loss::Released);
            writer.join().unwrap();
            assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
        });
    }
}

/// A term ends while a write is under way. The end itself records that the write may lack an answer.
#[test]
fn s4_an_end_records_the_writes_under_way() {
    type End = fn(Grantor, Grant) -> (Option<Grantor>, Option<Grant>);
    let ends: [End; 4] = [
        |grantor, grant| {
            grantor.revoke(Loss::Taken);
            (Some(grantor), Some(grant))
        },
        |grantor, grant| {
            drop(grant);
            (Some(grantor), None)
        },
        |grantor, grant| {
            drop(grantor);
            (None, Some(grant))
        },
        |grantor, _old| {
            let next = grantor.grant(term(2), at(DEADLINE)).unwrap();
            (Some(grantor), Some(next))
        },
    ];
    for end in ends {
        loom::model(move || {
            let (grantor, leadership, grant) = leading(Arc::new(Still));
            let writer = {
                let leadership = leadership.clone();
                thread::spawn(move || leadership.admit())
            };
            let _left = end(grantor, grant);
            let recorded = leadership.unanswered().is_some();
            let write: Option<WritePermit> = writer.join().unwrap();
            if let Some(write) = write {
                assert!(write.is_valid() || recorded, "a write of the ended term is forgotten");
            }
        });
    }
}

/// The elector drops its grant while a watch sees another holder. One of the two ends records the write under way.
#[test]
fn s4_two_ends_at_once_forget_no_write() {
    most_orders(3, || {
        let (grantor, leadership, grant) = leading(Arc::new(Still));
        let writer = {
            let leadership = leadership.clone();
            thread::spawn(move || leadership.admit())
        };
        let elector = thread::spawn(move || drop(grant));
        grantor.closer().revoke(Loss::Taken);
        let recorded = leadership.unanswered().is_some();
        elector.join().unwrap();
        let write = writer.join().unwrap();
        assert!(write.is_none() || recorded, "a write of the ended term is forgotten");
    });
}
