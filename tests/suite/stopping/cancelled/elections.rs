//! Futures that own an election, and those that end it.

use crate::{
    stopping::cancelled::orphan::{World, pass_ms, restless},
    support::{FIRST, SKEW, SOON, candidate, steal, until, within},
};
use kube_leader_gate::{CancellationToken, election::LeaseEnd, testing::Judge};
use std::{cell::Cell, future::pending, time::Duration};
use test_support::assert_safety;
use test_support::cancellation::dropped_at_each_poll;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn s10_run_dropped_at_each_poll_leaves_nothing() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (world, election) = World::new();
        let workload = async {
            world.leader.elected().await;
            world.write().await;
            world.give_a_write_up().await;
            pass_ms(2_100).await;
            world.leave_a_write_behind();
            "the output"
        };
        let run = cut.off(restless(election.run(workload))).await;
        if let Some(run) = run {
            let finished = run.expect("it was told to end");
            assert_eq!((finished.output, finished.lease), ("the output", LeaseEnd::Released));
        }
        world.must_be_orphaned().await;
    });
    assert!(worlds > 120, "{worlds}");
}

#[test]
fn s10_run_until_dropped_at_each_poll_leaves_nothing() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (world, election) = World::new();
        let shutdown = async {
            world.leader.elected().await;
            pass_ms(1_500).await;
        };
        // It does not end by itself.
        let workload = async {
            world.leader.elected().await;
            world.give_a_write_up().await;
            loop {
                if world.leader.can_write() {
                    world.leave_a_write_behind();
                }
                pass_ms(250).await;
            }
        };
        if let Some(run) = cut.off(restless(election.run_until(shutdown, workload))).await {
            let finished = run.expect("it was told to end");
            assert_eq!((finished.output, finished.lease), (None::<()>, LeaseEnd::Released));
        }
        world.must_be_orphaned().await;
    });
    assert!(worlds > 120, "{worlds}");
}

/// Counts the works that exist.
struct Present<'a>(&'a Cell<u32>);

impl<'a> Present<'a> {
    fn new(count: &'a Cell<u32>) -> Self {
        count.set(count.get() + 1);
        assert_eq!(count.get(), 1, "one work at a time");
        Self(count)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The first work ends by itself, the second one when it is told to.
#[test]
fn s11_leading_work_dropped_at_each_poll_leaves_nothing() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (world, election) = World::new();
        let (terms, present) = (Cell::new(0), Cell::new(0));
        let shutdown = async {
            while terms.get() < 2 {
                pass_ms(10).await;
            }
            pass_ms(1_000).await;
        };
        let work = |ends: CancellationToken, _| {
            terms.set(terms.get() + 1);
            let (term, present) = (terms.get(), Present::new(&present));
            let world = &world;
            async move {
                let _present = present;
                world.write().await;
                if term == 1 {
                    return;
                }
                world.give_a_write_up().await;
                ends.cancelled().await;
                world.leave_a_write_behind();
            }
        };
        if let Some(run) = cut.off(restless(election.run_while_leading(shutdown, work))).await {
            assert_eq!(run.expect("it was told to end").lease, LeaseEnd::Released);
        }
        assert_eq!(present.get(), 0, "the work is dropped");
        world.must_be_orphaned().await;
    });
    assert!(worlds > 120, "{worlds}");
}

#[test]
fn s4_stop_dropped_at_each_poll_leaves_the_lease_to_expire() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (world, election) = World::new();
        let a = election.start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        world.give_a_write_up().await;
        world.leave_a_write_behind();
        until(SOON, "the write is under way", || world.leader.leadership().writes_under_way() > 0).await;
        if let Some(end) = cut.off(restless(a.stop())).await {
            assert_eq!(end, LeaseEnd::Released);
        }
        world.must_be_orphaned().await;
    });
    assert!(worlds > 120, "{worlds}");
}

/// Not cancel-safe: the gate is closed then, and stays so until the next call. Another candidate leads meanwhile.
#[test]
fn s4_step_down_dropped_at_each_poll_yields_to_another_candidate() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (world, election) = World::new();
        let mut a = election.start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        let b = candidate(&world.server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        world.leave_a_write_behind();
        until(SOON, "the write is under way", || world.leader.leadership().writes_under_way() > 0).await;
        let stepped = cut.off(restless(a.step_down(5 * SECOND))).await;
        if cut.polled() {
            assert!(!world.leader.can_write());
            within(17 * SECOND + SKEW, "b leads", b.candidate().elected()).await;
            assert!(!world.leader.is_leader());
        }
        if stepped.is_none() {
            within(10 * SECOND, "it steps down again", a.step_down(Duration::ZERO)).await;
        }
        b.stop().await;
        within(17 * SECOND, "a leads again", a.candidate().elected()).await;
        world.write().await;
        let verdict = Judge::new("default", "operator", ["a", "b"]).verdict(&world.server.write_log());
        assert_safety!(verdict.strays.is_empty(), "{:?}", verdict.strays);
        drop(a);
        world.must_be_orphaned().await;
    });
    assert!(worlds > 120, "{worlds}");
}

/// A workload that waits for ever is woken by a theft, in whichever world.
#[test]
fn s7_theft_closes_the_gate_of_a_run_at_each_poll() {
    dropped_at_each_poll(async |cut| {
        let (world, election) = World::new();
        let thief = async {
            world.leader.elected().await;
            steal(&world.server);
            until(SOON, "the gate closes", || !world.leader.can_write()).await;
        };
        let work = async |ends: CancellationToken| {
            ends.cancelled().await;
            pending::<()>().await;
        };
        cut.off(restless(election.run_while_leading(thief, |ends, _| work(ends)))).await;
        world.must_be_orphaned().await;
    });
}
