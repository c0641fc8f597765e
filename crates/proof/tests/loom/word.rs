//! Model-checks every interleaving of the word's atomics with loom.
//!
//! Only the word is checked here. The other models have the lock, the wake-ups and the clock around it.

use crate::shipped::leadership::{sync::Ordering, word::Word};
use loom::{
    sync::{Arc, atomic::AtomicUsize},
    thread,
};

const DEADLINE: u64 = 100;

fn now() -> u64 {
    10
}

/// The ways in which the gate stops admitting.
const ENDS: [fn(&Word); 2] = [Word::close, Word::revoke];

/// Rule S4: if the gate has closed and a drain has seen no admitted write, no write is under way.
#[test]
fn s4_a_drain_misses_no_write() {
    for end in ENDS {
        loom::model(move || {
            let word = Arc::new(Word::new());
            word.open(DEADLINE);
            let writing = Arc::new(AtomicUsize::new(0));
            let writer = {
                let (word, writing) = (word.clone(), writing.clone());
                thread::spawn(move || {
                    if word.enter(now).is_ok() {
                        // Relaxed, so that only the word's own orderings make this store visible.
                        writing.store(1, Ordering::Relaxed);
                        writing.store(0, Ordering::Relaxed);
                        word.leave();
                    }
                })
            };
            end(&word);
            let drained = word.admitted() == 0;
            if drained {
                // A write that began before has finished. A write that comes now is refused.
                assert_eq!(writing.load(Ordering::Relaxed), 0);
            }
            writer.join().unwrap();
            assert!(word.enter(now).is_err());
        });
    }
}

/// A waiting drain wakes: either it sees no write, or the last write sees the closed word.
#[test]
fn s4_the_last_write_wakes_the_drain() {
    let mut some_orders = loom::model::Builder::new();
    // Three threads have too many interleavings to try them all.
    some_orders.preemption_bound = Some(2);
    for end in ENDS {
        some_orders.check(move || {
            let word = Arc::new(Word::new());
            word.open(DEADLINE);
            let told = Arc::new(AtomicUsize::new(0));
            let writers: Vec<_> = (0..2)
                .map(|_| {
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
                })
                .collect();
            end(&word);
            let drained = word.admitted() == 0;
            for writer in writers {
                writer.join().unwrap();
            }
            assert!(drained || told.load(Ordering::SeqCst) == 1, "the drain would wait for ever");
        });
    }
}

/// Rule S1: a grant never admits a write after its deadline, even while the next grant opens.
#[test]
fn s1_an_expired_grant_admits_no_write() {
    loom::model(|| {
        let word = Arc::new(Word::new());
        let first = word.open(DEADLINE);
        let owner = {
            let word = word.clone();
            thread::spawn(move || word.open(DEADLINE + 100))
        };
        let admitted = word.enter(|| DEADLINE + 50);
        let second = owner.join().unwrap();
        if let Ok((grant, _)) = admitted {
            assert_eq!((first, grant), (second - 1, second));
        }
    });
}

/// Rule S2: a write of one term is not valid in the next one.
#[test]
fn s2_a_write_is_invalid_in_the_next_term() {
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
        // Whether valid or not, the write must be compared with the first grant's own deadline.
        let valid_late = word.is_valid(first, || DEADLINE + 50);
        assert!(!valid_late, "valid past the deadline of its grant");
        let second = owner.join().unwrap();
        assert_ne!(first, second);
        assert!(!word.is_valid(first, now));
        assert!(word.is_valid(second, now));
    });
}

/// Lets an extension race with `change`. Returns the word, its grant, and whether the extension moved the deadline.
fn extended_against(change: impl FnOnce(&Word)) -> (Arc<Word>, u64, bool) {
    let word = Arc::new(Word::new());
    let grant = word.open(DEADLINE);
    let renewal = {
        let word = word.clone();
        thread::spawn(move || word.extend(grant, DEADLINE * 2, now))
    };
    change(&word);
    let extended = renewal.join().unwrap();
    (word, grant, extended)
}

/// Rule S3: an extension that races with a revocation never re-opens the gate.
#[test]
fn s3_an_extension_never_undoes_a_revocation() {
    loom::model(|| {
        let (word, _, _) = extended_against(Word::revoke);
        assert!(!word.is_open(now));
        assert!(word.enter(now).is_err());
    });
}

/// Rule S4: after an extension races with a close, the gate is closed and admitted writes keep their time.
#[test]
fn s4_an_extension_never_undoes_a_close() {
    loom::model(|| {
        let (word, grant, extended) = extended_against(Word::close);
        assert!(extended);
        assert!(!word.is_open(now));
        assert!(word.is_valid(grant, || DEADLINE + 1));
    });
}
