//! Rules S1, S2, S3 and S10: what ends a term ends it for good, and ends no other.

use super::*;
use loom::thread;

fn is_shut(leadership: &Leadership) {
    assert!(!leadership.can_write());
    assert!(leadership.admit().is_none());
}

/// A renewal that races with an end never opens the gate again.
#[test]
fn s3_an_extension_never_undoes_an_end() {
    let ends: [fn(&Grantor); 4] =
        [Grantor::close, |it| it.revoke(Loss::Taken), |it| it.closer().close(), |it| it.closer().seal()];
    for end in ends {
        loom::model(move || {
            let (grantor, leadership, grant) = leading(Arc::new(Still));
            let renewal = thread::spawn(move || {
                let _ = grant.extend(at(2 * DEADLINE));
                grant
            });
            end(&grantor);
            is_shut(&leadership);
            let _grant = renewal.join().unwrap();
            is_shut(&leadership);
        });
    }
}

/// Only a renewal that began in time moves the deadline.
#[test]
fn s1_a_late_extension_opens_nothing() {
    loom::model(|| {
        let clock = Arc::new(Hand(AtomicU64::new(START)));
        let (_grantor, leadership, grant) = leading(clock.clone());
        let renewal = {
            let clock = clock.clone();
            thread::spawn(move || {
                let began = clock.now();
                (began, grant.extend(at(2 * DEADLINE)), grant)
            })
        };
        clock.set(DEADLINE);
        let admitted = leadership.admit();
        let (began, extended, _grant) = renewal.join().unwrap();
        assert!(began < at(DEADLINE) || extended.is_err(), "too late");
        if extended.is_err() {
            assert!(admitted.is_none());
            is_shut(&leadership);
        } else {
            assert!(leadership.can_write());
        }
    });
}

/// What a thread has seen to end, no renewal continues.
#[test]
fn s1_a_term_that_was_seen_to_end_has_ended() {
    loom::model(|| {
        let clock = Arc::new(Hand(AtomicU64::new(START)));
        let (_grantor, leadership, grant) = leading(clock.clone());
        let write = leadership.admit().unwrap();
        let renewal = thread::spawn(move || (grant.extend(at(2 * DEADLINE)), grant));
        clock.set(DEADLINE);
        let valid = write.is_valid();
        let (extended, _grant) = renewal.join().unwrap();
        assert_eq!(valid, extended.is_ok());
    });
}

/// The owner of an old grant renews it and drops it while the next term begins. The next term stays as it is.
#[test]
fn s3_an_old_grant_changes_no_newer_one() {
    loom::model(|| {
        let (grantor, leadership, old) = leading(Arc::new(Still));
        let owner = thread::spawn(move || {
            let _ = old.extend(at(4 * DEADLINE));
            drop(old);
        });
        let new = grantor.grant(term(2), at(2 * DEADLINE)).unwrap();
        let untouched = || {
            assert!(new.is_valid() && leadership.can_write());
            assert_eq!(leadership.deadline(), Some(at(2 * DEADLINE)));
        };
        untouched();
        owner.join().unwrap();
        untouched();
        assert_eq!(leadership.state().term, Some(term(2)));
    });
}

/// The deadline of the first term has passed, and the next term begins. Each write belongs to one term.
#[test]
fn s2_a_write_is_valid_in_its_own_term_only() {
    most_orders(5, || {
        let clock = Arc::new(Hand(AtomicU64::new(START)));
        let (grantor, leadership, _old) = leading(clock.clone());
        let write = leadership.admit().unwrap();
        clock.set(DEADLINE);
        let writer = {
            let leadership = leadership.clone();
            thread::spawn(move || {
                assert!(!write.is_valid(), "its deadline has passed");
                (write, leadership.admit())
            })
        };
        let _new = grantor.grant(term(2), at(2 * DEADLINE)).unwrap();
        let (old, new) = writer.join().unwrap();
        assert!(!old.is_valid());
        assert!(new.is_none_or(|write| write.is_valid()), "only the second term can have admitted it");
    });
}

/// Another candidate takes the lease, and loses it again. A write that was cut off stays cut off.
#[test]
fn s2_a_cut_off_write_stays_cut_off() {
    loom::model(|| {
        let (grantor, leadership, _old) = leading(Arc::new(Still));
        let write = leadership.admit().unwrap();
        let writer = thread::spawn(move || {
            let first = write.is_valid();
            let second = write.is_valid();
            assert!(first || !second, "valid again");
            if !second {
                assert_eq!(write.loss(), Loss::Taken);
            }
            write
        });
        grantor.revoke(Loss::Taken);
        let _new = grantor.grant(term(2), at(DEADLINE)).unwrap();
        assert!(!writer.join().unwrap().is_valid());
        assert!(leadership.admit().is_some_and(|write| write.is_valid()));
    });
}

/// A write that waits for its answer learns of each end of its term.
#[test]
fn s2_an_end_wakes_a_waiting_write() {
    let ends: [fn(&Grantor, Grant) -> Option<Grant>; 3] = [
        |grantor, grant| {
            grantor.revoke(Loss::Taken);
            Some(grant)
        },
        |_, grant| {
            drop(grant);
            None
        },
        |grantor, _old| grantor.grant(term(2), at(DEADLINE)).ok(),
    ];
    for end in ends {
        loom::model(move || {
            let (grantor, leadership, grant) = leading(Arc::new(Still));
            let write = leadership.admit().unwrap();
            let writer = thread::spawn(move || {
                let (woken, mut ended) = (Arc::new(Woken::default()), Box::pin(write.term_ended()));
                let learned = woken.poll(ended.as_mut()) || !write.is_valid();
                (learned, woken, ended)
            });
            let _left = end(&grantor, grant);
            let (learned, woken, _ended) = writer.join().unwrap();
            assert!(learned || woken.get(), "the write waits on");
        });
    }
}

/// A stop races with a renewal and a write. The write keeps its time, and no other write comes.
#[test]
fn s4_a_close_beside_a_renewal_and_a_write() {
    most_orders(3, || {
        let (grantor, leadership, grant) = leading(Arc::new(Still));
        let renewal = thread::spawn(move || (grant.extend(at(2 * DEADLINE)), grant));
        let writer = {
            let leadership = leadership.clone();
            thread::spawn(move || leadership.admit())
        };
        grantor.close();
        is_shut(&leadership);
        let (extended, _grant) = renewal.join().unwrap();
        assert_eq!((extended, leadership.deadline()), (Ok(()), Some(at(2 * DEADLINE))));
        let write = writer.join().unwrap();
        assert_eq!(leadership.writes_under_way(), usize::from(write.is_some()));
        assert!(write.is_none_or(|write| write.is_valid()));
        is_shut(&leadership);
    });
}

/// A stop races with a grant. Whichever comes first, the gate is shut.
#[test]
fn s4_a_grant_never_undoes_a_seal() {
    loom::model(|| {
        let grantor = Arc::new(Grantor::with_clock(Arc::new(Still)));
        let leadership = grantor.leadership();
        let elector = {
            let grantor = grantor.clone();
            thread::spawn(move || grantor.grant(term(1), at(DEADLINE)))
        };
        grantor.closer().seal();
        is_shut(&leadership);
        let _grant = elector.join().unwrap();
        is_shut(&leadership);
    });
}

/// The election's task dies while another thread renews the grant and a third one writes. The grant may outlive it.
#[test]
fn s10_nothing_is_admitted_after_the_grantor() {
    for keeps in [false, true] {
        most_orders(2, move || {
            let (grantor, leadership, grant) = leading(Arc::new(Still));
            let renewal = thread::spawn(move || {
                let _ = grant.extend(at(2 * DEADLINE));
                keeps.then_some(grant)
            });
            let writer = {
                let leadership = leadership.clone();
                thread::spawn(move || leadership.admit())
            };
            drop(grantor);
            is_shut(&leadership);
            let grant = renewal.join().unwrap();
            assert!(grant.is_none_or(|grant| !grant.is_valid()));
            assert!(writer.join().unwrap().is_none_or(|write| !write.is_valid()));
            is_shut(&leadership);
            assert_eq!(leadership.state().lost, Some(Loss::Abandoned));
        });
    }
}
