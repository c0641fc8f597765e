//! What is known of a term after it has ended, and when no term may begin.

use super::{
    Clock, ErrTooLate, Grant, GrantedTerm, Grantor, Intent, Leadership, Loss, Moment, Term, TermLoss,
    WritePermit,
};
use futures_util::FutureExt;
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

const LATE: Moment = Moment::from_nanos(1_000_000);

/// A clock that a test sets.
#[derive(Debug)]
struct Set(AtomicU64);

impl Clock for Set {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

fn stage() -> (Grantor, Leadership, Arc<Set>) {
    let clock = Arc::new(Set(1_000.into()));
    let grantor = Grantor::with_clock(clock.clone());
    let leadership = grantor.leadership();
    (grantor, leadership, clock)
}

fn lead(grantor: &Grantor) -> Grant {
    grantor.grant(Term::new("u", 1), LATE).unwrap()
}

#[test]
fn s4_a_term_that_is_lost_leaves_its_open_writes_without_an_answer() {
    let (grantor, leadership, clock) = stage();
    let grant = lead(&grantor);
    let open = leadership.admit().unwrap();
    clock.0.store(2_000, Ordering::SeqCst);
    grant.end(Loss::Taken);
    assert_eq!(leadership.unanswered(), Some(Moment::from_nanos(2_000)));
    drop(open);
}

#[test]
fn s4_a_term_without_open_writes_leaves_nothing() {
    let (grantor, leadership, _clock) = stage();
    lead(&grantor).end(Loss::Taken);
    assert_eq!(leadership.unanswered(), None);
    // An election releases only after all writes, so a release records no write. This write is recorded when it ends.
    let grant = lead(&grantor);
    let open = leadership.admit().unwrap();
    grant.end(Loss::Released);
    assert_eq!(leadership.unanswered(), None);
    drop(open);
    assert_eq!(leadership.unanswered(), Some(Moment::from_nanos(1_000)));
}

/// The clock of a simulation may begin at its origin.
#[test]
fn s4_write_without_an_answer_at_the_clocks_origin_counts() {
    let (grantor, leadership, clock) = stage();
    clock.0.store(0, Ordering::SeqCst);
    let _grant = lead(&grantor);
    drop(leadership.admit().unwrap());
    assert!(leadership.unanswered().is_some());
}

#[test]
fn write_of_an_earlier_term_learns_how_the_last_one_was_lost() {
    let (grantor, leadership, _clock) = stage();
    let writes = [Loss::Taken, Loss::Abandoned].map(|loss| {
        let grant = lead(&grantor);
        let write = leadership.admit().unwrap();
        grant.end(loss);
        assert_eq!(write.loss(), loss);
        write
    });
    assert_eq!(writes.map(|write| write.loss()), [Loss::Abandoned; 2]);
}

#[test]
fn a_release_alone_is_no_lapse() {
    let (grantor, leadership, _clock) = stage();
    let mut term_loss = leadership.term_loss();
    assert!(!term_loss.occurred());
    lead(&grantor).end(Loss::Released);
    assert!(!term_loss.occurred(), "all writes had ended");
    lead(&grantor).end(Loss::Taken);
    assert!(term_loss.occurred());
    assert!(!term_loss.occurred(), "it was reported");
    lead(&grantor).end(Loss::Released);
    lead(&grantor).end(Loss::Released);
    assert!(term_loss.occurred(), "a term has begun and ended unseen");
}

#[test]
fn an_election_that_has_not_begun_gets_no_term() {
    let grantor = Grantor::of_election(Arc::new(Set(1_000.into())));
    let leadership = grantor.leadership();
    assert!(
        leadership.trouble().is_some_and(|trouble| trouble.contains("not")),
        "{:?}",
        leadership.trouble()
    );
    let refused = grantor.grant(Term::new("u", 1), LATE).unwrap_err();
    assert_eq!(refused, ErrTooLate(()));
    assert!(refused.to_string().contains("leadership needs a new grant"), "{refused}");
    grantor.begin();
    assert_eq!(leadership.trouble(), None);
    let _grant = lead(&grantor);
    assert!(leadership.can_write());
}

#[test]
fn s4_neither_a_beginning_nor_the_end_of_a_pause_breaks_a_seal() {
    let (grantor, leadership, _clock) = stage();
    let (closer, grant) = (grantor.closer(), lead(&grantor));
    closer.close();
    assert!(!leadership.can_write());
    assert!(grantor.grant(Term::new("u", 1), LATE).is_err());
    closer.revoke(Loss::Abandoned);
    assert!(!leadership.is_leader());
    drop(grant);
    closer.contend();
    let _grant = lead(&grantor);
    assert!(leadership.can_write());
    closer.seal();
    closer.close();
    closer.contend();
    grantor.begin();
    assert!(!leadership.can_write());
    assert!(grantor.grant(Term::new("u", 1), LATE).is_err());
}

/// The work of the last term may still run, and its task may not have noticed the end.
#[test]
fn s11_next_term_waits_until_it_is_allowed() {
    let (grantor, leadership, clock) = stage();
    let closer = grantor.closer();
    for loss in [Loss::Taken, Loss::Expired, Loss::Abandoned] {
        let grant = lead(&grantor);
        assert_eq!(grantor.leadership().intent(), Intent::Contend);
        closer.keep_to_this_term();
        assert!(leadership.can_write() && grant.extend(LATE).is_ok(), "the term itself goes on");
        assert!(grantor.grant(Term::new("u", 2), LATE).is_err(), "no other one replaces it");
        grant.end(loss);
        clock.0.fetch_add(1, Ordering::SeqCst);
        assert!(grantor.grant(Term::new("u", 2), LATE).is_err());
        assert!(!leadership.is_leader());
        closer.contend();
    }
    closer.seal();
    closer.keep_to_this_term();
    closer.contend();
    assert!(grantor.grant(Term::new("u", 3), LATE).is_err(), "it breaks no seal");
}

#[test]
fn a_term_keeps_what_it_was_given() {
    let term = Term::new("uid", 7);
    assert_eq!((term.lease_uid(), term.transitions(), term.fencing_token()), ("uid", 7, None));
    assert_eq!(term.to_string(), "uid/7");
    let term = term.with_fencing_token(42);
    assert_eq!((term.lease_uid(), term.transitions(), term.fencing_token()), ("uid", 7, Some(42)));
}

#[test]
fn a_term_that_closes_admits_nothing_but_goes_on() {
    let (grantor, leadership, clock) = stage();
    let grant = lead(&grantor);
    let term = leadership.terms().next().now_or_never().flatten().unwrap();
    assert!(term.is_open());
    assert!(term.closing().now_or_never().is_none());
    grantor.close();
    assert!(!term.is_open());
    assert!(term.closing().now_or_never().is_some());
    assert!(term.over().now_or_never().is_none());
    clock.0.store(3_000, Ordering::SeqCst);
    grant.end(Loss::Released);
    assert!(term.over().now_or_never().is_some());
    assert_eq!(term.ended_at(), Moment::from_nanos(3_000));
    clock.0.store(4_000, Ordering::SeqCst);
    lead(&grantor).end(Loss::Taken);
    assert_eq!(term.ended_at(), Moment::from_nanos(0), "its record is gone");
}

/// Once this clock is armed, its next reading is one nanosecond before the deadline. The clock returns this reading only
/// after another thread has seen a time at which the deadline has passed.
#[derive(Debug)]
struct Edge {
    now: AtomicU64,
    armed: AtomicBool,
    reached: Barrier,
    passed: Barrier,
    seen: AtomicBool,
}

impl Clock for Edge {
    fn now(&self) -> Moment {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.reached.wait();
            self.passed.wait();
            return Moment::from_nanos(LATE.as_nanos() - 1);
        }
        let now = Moment::from_nanos(self.now.load(Ordering::SeqCst));
        if now >= LATE && self.seen.swap(false, Ordering::SeqCst) {
            self.passed.wait();
        }
        now
    }
}

/// A renewal is in time, but its thread records it late. Another thread that looks in between sees a passed deadline. It
/// must not report the end of a term that then goes on.
#[test]
fn s1_renewal_at_the_last_moment_ends_nothing() {
    type Look = fn(&Leadership, &Grant, &WritePermit, &GrantedTerm, &mut TermLoss) -> bool;
    let looks: [(&str, Look); 8] = [
        ("leader", |leadership, _, _, _, _| leadership.is_leader()),
        ("term", |leadership, _, _, _, _| leadership.term().is_some()),
        ("gate", |leadership, _, _, _, _| leadership.can_write()),
        ("grant", |_, grant, _, _, _| grant.is_valid()),
        ("write", |_, _, write, _, _| write.is_valid()),
        ("term", |_, _, _, term, _| term.over().now_or_never().is_none()),
        ("open", |_, _, _, term, _| term.is_open()),
        ("term_loss", |_, _, _, _, term_loss| !term_loss.occurred()),
    ];
    for (name, look) in looks {
        let clock = Arc::new(Edge {
            now: 0.into(),
            armed: false.into(),
            reached: Barrier::new(2),
            passed: Barrier::new(2),
            seen: false.into(),
        });
        let grantor = Grantor::with_clock(clock.clone());
        let leadership = grantor.leadership();
        let (grant, later) = (lead(&grantor), LATE.saturating_add(Duration::from_secs(1)));
        let write = leadership.admit().unwrap();
        let term = leadership.terms().next().now_or_never().flatten().unwrap();
        let mut term_loss = leadership.term_loss();
        clock.armed.store(true, Ordering::SeqCst);
        let goes_on = thread::scope(|scope| {
            let renewing = scope.spawn(|| grant.extend(later));
            clock.reached.wait();
            clock.now.store(LATE.as_nanos(), Ordering::SeqCst);
            clock.seen.store(true, Ordering::SeqCst);
            let goes_on = look(&leadership, &grant, &write, &term, &mut term_loss);
            renewing.join().unwrap().unwrap();
            goes_on
        });
        assert!(goes_on, "{name}: it was renewed");
        clock.now.store(later.as_nanos(), Ordering::SeqCst);
        assert!(!look(&leadership, &grant, &write, &term, &mut term_loss), "{name}: it has run out");
    }
}
