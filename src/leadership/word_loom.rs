//! Every interleaving of the word's few atomics, by loom.

use super::{Ordering, Word};
use loom::{
    sync::{Arc, atomic::AtomicUsize},
    thread,
};

const DEADLINE: u64 = 100;

fn now() -> u64 {
    10
}

/// Rule S4: once the gate has closed and a drain has seen no admitted write, none is under way.
#[test]
fn s4_a_drain_misses_no_write() {
    loom::model(|| {
        let word = Arc::new(Word::new());
        word.open(DEADLINE);
        let writing = Arc::new(AtomicUsize::new(0));
        let writer = {
            let (word, writing) = (word.clone(), writing.clone());
            thread::spawn(move || {
                if word.enter(now).is_ok() {
                    writing.store(1, Ordering::SeqCst);
                    writing.store(0, Ordering::SeqCst);
                    word.leave();
                }
            })
        };
        word.close();
        let drained = word.admitted() == 0;
        if drained {
            // A write that began before is over; a write that comes now is refused.
            assert_eq!(writing.load(Ordering::SeqCst), 0);
        }
        writer.join().unwrap();
        if drained {
            assert_eq!(writing.load(Ordering::SeqCst), 0);
        }
        assert!(word.enter(now).is_err());
    });
}

/// Whoever waits for the last write is told: either the drain sees none, or the last write sees the closed word.
#[test]
fn s4_the_last_write_wakes_the_drain() {
    loom::model(|| {
        let word = Arc::new(Word::new());
        word.open(DEADLINE);
        let told = Arc::new(AtomicUsize::new(0));
        let writer = {
            let (word, told) = (word.clone(), told.clone());
            thread::spawn(move || {
                let last = match word.enter(now) {
                    Ok(_) => word.leave(),
                    Err(refused) => refused.was_last,
                };
                if last {
                    told.store(1, Ordering::SeqCst);
                }
            })
        };
        word.close();
        let drained = word.admitted() == 0;
        writer.join().unwrap();
        assert!(drained || told.load(Ordering::SeqCst) == 1, "the drain would wait for ever");
    });
}

/// Rule S2: a write of one term is not valid in the next one.
#[test]
fn s2_a_write_never_crosses_into_the_next_term() {
    loom::model(|| {
        let word = Arc::new(Word::new());
        let first = word.open(DEADLINE);
        let owner = {
            let word = word.clone();
            thread::spawn(move || {
                word.revoke();
                word.open(DEADLINE + 100)
            })
        };
        // Valid or not, it must have been judged by the first grant's own deadline.
        let valid_late = word.is_valid(first, || DEADLINE + 50);
        assert!(!valid_late, "valid past the deadline of its grant");
        let second = owner.join().unwrap();
        assert_ne!(first, second);
        assert!(!word.is_valid(first, now));
        assert!(word.is_valid(second, now));
    });
}

/// Rule S3: an extension that races with a revocation never re-opens the gate.
#[test]
fn s3_an_extension_never_undoes_a_revocation() {
    loom::model(|| {
        let word = Arc::new(Word::new());
        let grant = word.open(DEADLINE);
        let renewal = {
            let word = word.clone();
            thread::spawn(move || word.extend(grant, DEADLINE * 2, now))
        };
        word.revoke();
        renewal.join().unwrap();
        assert!(!word.is_open(now));
        assert!(word.enter(now).is_err());
    });
}

/// Rule S4: an extension that races with a close leaves the gate closed, and the admitted writes their time.
#[test]
fn s4_an_extension_never_undoes_a_close() {
    loom::model(|| {
        let word = Arc::new(Word::new());
        let grant = word.open(DEADLINE);
        let renewal = {
            let word = word.clone();
            thread::spawn(move || word.extend(grant, DEADLINE * 2, now))
        };
        word.close();
        assert!(renewal.join().unwrap());
        assert!(!word.is_open(now));
        assert!(word.is_valid(grant, || DEADLINE + 1));
    });
}
