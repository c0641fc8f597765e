//! A clock that panics.

use crate::{
    faults::panics::{HANDOVER, SECOND, leading_alone},
    support::{FIRST, SKEW, SOON, begin_write, build, builder, candidate, gated, pass, until, within, write},
};
use futures_util::FutureExt;
use kube_leader_gate::{
    leadership::{Clock, Loss, Moment},
    testing::{ApiServer, Fault, Judge, TokioClock},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use test_support::assert_safety;

/// A clock whose next calls panic, once so many calls have passed.
#[derive(Clone, Debug)]
struct Fragile {
    clock: TokioClock,
    /// 0 while it works.
    left: Arc<AtomicU64>,
    /// It panics at each call from then on, or once.
    for_ever: bool,
    panicked: Arc<AtomicBool>,
}

impl Fragile {
    fn new(for_ever: bool) -> Self {
        Self { clock: TokioClock::new(), left: Arc::default(), for_ever, panicked: Arc::default() }
    }

    fn break_after(&self, calls: u64) {
        self.left.store(calls, SeqCst);
    }

    fn has_panicked(&self) -> bool {
        self.panicked.load(SeqCst)
    }
}

impl Clock for Fragile {
    fn now(&self) -> Moment {
        match self.left.load(SeqCst) {
            0 => {}
            1 => {
                self.left.store(u64::from(self.for_ever), SeqCst);
                self.panicked.store(true, SeqCst);
                panic!("the clock breaks");
            }
            left => self.left.store(left - 1, SeqCst),
        }
        self.clock.now()
    }
}

/// Whichever task meets the panic: a hanging write ends in time, and another candidate can lead.
#[tokio::test(start_paused = true)]
async fn s10_clock_that_panics_at_any_call_leaves_no_gate_open() {
    for for_ever in [false, true] {
        let mut ended = 0;
        for calls in 1.. {
            let server = ApiServer::new();
            let clock = Fragile::new(for_ever);
            let election = build(&server, "a", builder("a").clock(Arc::new(clock.clone()))).expect("valid");
            let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
            let a = election.start();
            within(FIRST, "a leads", leader.elected()).await;
            let b = candidate(&server, "b").start();
            until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
            let hanging = server.inject(Fault::hang_before().resource("tokenreviews"));
            let writing = begin_write(&leader, &client).await;
            clock.break_after(calls);
            pass(5 * SECOND).await;
            drop(hanging);
            if !clock.has_panicked() {
                clock.break_after(0);
                assert!(calls > 20, "only {calls}");
                break;
            }
            if for_ever || leader.check(Duration::MAX).is_err() {
                ended += 1;
                // It ends the writes too, at the next look at the clock at the latest.
                let written = within(12 * SECOND, "the write is cut off", writing).await;
                assert!(written.is_err() || written.is_ok_and(|written| written.is_err()), "{calls}");
                assert!(!catch_unwind(AssertUnwindSafe(|| leader.can_write())).unwrap_or(false), "{calls}");
                within(HANDOVER, "b leads", b.candidate().elected()).await;
                drop(a);
            } else {
                // The panic was the writer's own.
                let written = within(SOON, "the write has ended", writing).await;
                assert!(written.unwrap_err().is_panic(), "{calls}");
                assert_eq!(leader.leadership().writes_under_way(), 0, "{calls}");
                write(&client).await.expect("a still leads");
                within(SKEW + SOON, "a stops", a.stop()).await;
            }
            let verdict = Judge::new("default", "operator", ["a", "b"]).verdict(&server.write_log());
            assert_safety!(verdict.strays.is_empty(), "{calls}: {:?}", verdict.strays);
        }
        assert!(ended > 10, "only {ended}");
    }
}

#[tokio::test(start_paused = true)]
async fn s4_clock_panic_at_admission_counts_no_write() {
    let clock = Fragile::new(false);
    let (_grantor, _grant, leadership) = leading_alone(clock.clone());
    clock.break_after(1);
    catch_unwind(AssertUnwindSafe(|| leadership.admit())).expect_err("it panics");
    assert_eq!(leadership.writes_under_way(), 0);
    assert!(leadership.admit().is_some());
}

/// Nothing says when it ended, so it may land: a stop waits for it, and cuts it off.
#[tokio::test(start_paused = true)]
async fn s4_clock_panic_at_the_end_of_a_write_keeps_it_counted() {
    let clock = Fragile::new(false);
    let (_grantor, grant, leadership) = leading_alone(clock.clone());
    let write = leadership.admit().expect("it leads");
    clock.break_after(1);
    drop(write);
    assert_eq!(leadership.writes_under_way(), 1);
    grant.end(Loss::Abandoned);
    assert!(leadership.unanswered().is_some());
}

#[tokio::test(start_paused = true)]
async fn s10_clock_panic_at_the_end_of_a_term_cuts_off_its_writes() {
    let clock = Fragile::new(true);
    let (grantor, grant, leadership) = leading_alone(clock.clone());
    let write = leadership.admit().expect("it leads");
    let woken = write.term_ended();
    clock.break_after(1);
    // While a panic unwinds, a second one would abort the process.
    let unwinding = catch_unwind(AssertUnwindSafe(move || {
        let _both = (grant, grantor);
        panic!("the election breaks");
    }));
    unwinding.expect_err("it panics");
    assert!(woken.now_or_never().is_some(), "the write is woken");
    assert!(leadership.deadline().is_none() && leadership.state().lost == Some(Loss::Abandoned));
    catch_unwind(AssertUnwindSafe(move || {
        let _write = write;
        panic!("the writer breaks");
    }))
    .expect_err("it panics");
}
