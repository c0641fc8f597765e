//! Many threads write while one thread grants, extends, closes, drains and ends terms.

use kube_leader_gate::{
    Leadership,
    leadership::{Grantor, Loss, Term, WritePermit},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const WRITERS: usize = 3;
const TERMS: u64 = 240;
/// Far longer than needed. A thread that reaches it was never woken.
const BOUND: Duration = Duration::from_secs(20);

/// What the granting thread has told the writers. Each change is noted before or after it happens, so that the check
/// is too weak rather than too strict.
#[derive(Default)]
struct Told {
    /// The last term that may have begun.
    begun: AtomicU64,
    /// The last term that has surely ended.
    ended: AtomicU64,
    /// Writes between their admission and their end.
    writing: AtomicUsize,
    admitted: AtomicUsize,
    over: AtomicBool,
}

fn write_on(leadership: &Leadership, told: &Told) {
    let mut held: Option<(WritePermit, u64)> = None;
    while !told.over.load(SeqCst) {
        let ended = told.ended.load(SeqCst);
        // A write that is kept for the next term.
        if let Some((_, term)) = &held
            && *term <= ended
        {
            let (old, term) = held.take().expect("just seen");
            assert!(!old.is_valid(), "S2: a write of term {term} is valid after it");
        }
        let Some(write) = leadership.admit() else {
            thread::yield_now();
            continue;
        };
        told.writing.fetch_add(1, SeqCst);
        told.admitted.fetch_add(1, SeqCst);
        let begun = told.begun.load(SeqCst);
        assert!(begun > ended, "S1: admitted although no term was there to admit it");
        for _ in 0..20 {
            // Valid when asked, so its term had not ended before the question.
            let over = told.ended.load(SeqCst);
            let valid = write.is_valid();
            assert!(!valid || over < begun, "S2: valid after its term");
        }
        told.writing.fetch_sub(1, SeqCst);
        // Only this term can have admitted it. Writes are kept only from terms that are not drained.
        if begun == ended + 1 && begun.is_multiple_of(3) {
            held = Some((write, begun));
        }
    }
}

/// One term, and how it ends.
async fn one_term(grantor: &Grantor, told: &Told, term: u64) {
    let length = Duration::from_secs(60);
    told.begun.store(term, SeqCst);
    let grant = grantor.grant(Term::new("uid", term), grantor.now().saturating_add(length)).unwrap();
    // Each term sees some writes, whatever the scheduling of the threads.
    let (before, begin) = (told.admitted.load(SeqCst), Instant::now());
    while told.admitted.load(SeqCst) < before + 3 {
        assert!(begin.elapsed() < BOUND, "S1: no write is admitted");
        thread::yield_now();
    }
    for _ in 0..term % 7 {
        grant.extend(grantor.now().saturating_add(length)).unwrap();
        thread::yield_now();
    }
    match term % 3 {
        // A clean end: no write is open once the drain is over, although the term goes on.
        1 => {
            grantor.close();
            grantor.leadership().drain(BOUND).await.expect("S4: the last write wakes the drain");
            for _ in 0..50 {
                assert_eq!(told.writing.load(SeqCst), 0, "S4: a write after the drain");
            }
            assert!(grant.is_valid());
            grant.end(Loss::Released);
        }
        2 => grantor.revoke(Loss::Taken),
        _ => drop(grant),
    }
    told.ended.store(term, SeqCst);
}

#[test]
fn s1_s2_s4_hold_with_many_threads() {
    let grantor = Grantor::new();
    let leadership = grantor.leadership();
    let told = Arc::new(Told::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let (leadership, told) = (leadership.clone(), told.clone());
            thread::spawn(move || write_on(&leadership, &told))
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let owner = {
        let told = told.clone();
        thread::spawn(move || {
            for term in 1..=TERMS {
                runtime.block_on(one_term(&grantor, &told, term));
            }
        })
    };
    let outcome = owner.join();
    told.over.store(true, SeqCst);
    for writer in writers {
        writer.join().expect("a writer");
    }
    outcome.expect("the owner");
    assert_eq!(leadership.writes_under_way(), 0);
}
