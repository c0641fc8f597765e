//! A lost term cancels the token at once. The work then has a bounded time before it is dropped.

use super::support::{Journal, SteppedClock, lead, lead_with};
use crate::locks::flawed::{Flaw, flawed};
use crate::support::priority::ranked;
use crate::support::{
    FIRST, LEASE, SOON, builder, candidate, is_not_leader, pass, steal, until, within, write,
};
use kube_leader_gate::{
    CancellationToken,
    election::ErrElectionEnded,
    testing::{ApiServer, Fault},
};
use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

const MS: Duration = Duration::from_millis(1);

/// At 15/10/2 s, another replica may lead 5 s after the deadline.
#[tokio::test(start_paused = true)]
async fn work_that_ignores_token_is_dropped_after_grace() {
    let given = [(None, 5000), (Some(1000), 1000), (Some(0), 0), (Some(60_000), 5000)];
    for (grace, expected) in given {
        for stolen in [true, false] {
            let server = ApiServer::new();
            let journal = Journal::default();
            let mut builder = builder("a");
            if let Some(grace) = grace {
                builder = builder.grace(grace * MS);
            }
            let _a = lead_with(&server, "a", builder, |_, _| journal.deaf());
            until(FIRST, "the work runs", || journal.present() == 1).await;
            let began = tokio::time::Instant::now();
            if stolen {
                steal(&server);
            } else {
                server.delete("outsider", LEASE).unwrap();
            }
            until(Duration::from_secs(6), "the work is dropped", || journal.ended().len() == 1).await;
            let took = journal.ended()[0].duration_since(began);
            assert!(took >= expected * MS && took <= (expected + 5) * MS, "grace {grace:?}: {took:?}");
            if expected > 0 {
                assert!(journal.cancelled()[0].duration_since(began) <= 5 * MS, "the token comes at once");
            }
        }
    }
}

/// A question of a preferred candidate closes the gate at once and lets an admitted write finish. The token is cancelled before that write
/// ends.
#[tokio::test(start_paused = true)]
async fn s7_question_cancels_token_during_a_write() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let low = lead(&server, "a", journal.obedient(SOON));
    until(FIRST, "the work runs", || journal.present() == 1).await;
    let slow = server.inject(Fault::delay_after(Duration::from_secs(3)).resource("tokenreviews"));
    let client = low.client.clone();
    let admitted = tokio::spawn(async move { write(&client).await });
    until(SOON, "a write is under way", || slow.hits() == 1).await;
    let high = ranked(&server, "b", "high").start();
    until(SOON, "the token is cancelled", || !journal.cancelled().is_empty()).await;
    assert!(!low.leader.can_write() && low.leader.is_leader());
    within(Duration::from_secs(4), "b leads", high.candidate().elected()).await;
    admitted.await.unwrap().expect("the write was not cut off");
    high.stop().await;
    until(SOON, "the work runs again", || journal.begun().len() == 2).await;
    assert_eq!(journal.most(), 1);
}

/// An outage: the old work has ended before the lease expires for the other candidates.
#[tokio::test(start_paused = true)]
async fn s11_old_work_ends_before_successors_work_starts() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let _a = lead(&server, "a", journal.deaf());
    until(FIRST, "a works", || journal.present() == 1).await;
    let _b = lead(&server, "b", journal.deaf());
    pass(Duration::from_secs(7)).await;
    let _cut = server.inject(Fault::hang_before().user("a"));
    until(Duration::from_secs(16), "b works", || journal.begun().len() == 2).await;
    assert_eq!(journal.most(), 1);
    let spare = journal.begun()[1].1.duration_since(journal.ended()[0]);
    assert!(spare < SOON, "and it had all the time that there was: {spare:?}");
}

/// The deadline passes while the process is frozen.
#[tokio::test(start_paused = true)]
async fn s1_grace_after_freeze_counts_from_deadline() {
    for frozen in [11_u64, 13, 60] {
        let server = ApiServer::new();
        let journal = Journal::default();
        let clock = SteppedClock::new();
        let polls = Arc::new(AtomicUsize::new(0));
        let builder = builder("a").clock(Arc::new(clock.clone()));
        let _a = lead_with(&server, "a", builder, |_, _| {
            let (journal, polls) = (journal.clone(), polls.clone());
            move |token: CancellationToken, term| {
                let (present, polls) = (journal.begin(&term), polls.clone());
                let is_first = journal.begun().len() == 1;
                async move {
                    let busy = async {
                        loop {
                            polls.fetch_add(usize::from(is_first), Ordering::SeqCst);
                            sleep(MS).await;
                        }
                    };
                    tokio::join!(present.until_cancelled(&token), busy);
                }
            }
        });
        until(FIRST, "the work runs", || journal.present() == 1).await;
        pass(SOON).await;
        let (began, before) = (tokio::time::Instant::now(), polls.load(Ordering::SeqCst));
        clock.step(Duration::from_secs(frozen));
        until(Duration::from_secs(6), "the work is dropped", || journal.ended().len() == 1).await;
        let lived = journal.ended()[0].duration_since(began);
        // Acquired some 100 ms ago: 10 s to the deadline, and 5 s from there.
        let left = Duration::from_secs(15_u64.saturating_sub(frozen));
        assert!(lived <= left && lived + 2 * SOON >= left, "frozen for {frozen} s, lived for {lived:?}");
        if left.is_zero() {
            assert_eq!(polls.load(Ordering::SeqCst), before, "it is not polled again");
        } else {
            assert!(journal.cancelled()[0].duration_since(began) <= 2 * MS, "the token comes at once");
        }
        until(Duration::from_secs(2), "the work runs again", || journal.begun().len() == 2).await;
        assert_eq!(journal.most(), 1);
    }
}

/// The term is lost during the call that makes the work. The work has done nothing yet, and never runs.
#[tokio::test(start_paused = true)]
async fn loss_during_work_creation_starts_no_work() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let clock = SteppedClock::new();
    let polled = Arc::new(AtomicUsize::new(0));
    let builder = builder("a").clock(Arc::new(clock.clone()));
    let _a = lead_with(&server, "a", builder, |_, _| {
        let (journal, polled) = (journal.clone(), polled.clone());
        move |_, term| {
            let (present, polled) = (journal.begin(&term), polled.clone());
            if journal.begun().len() == 1 {
                clock.step(Duration::from_secs(11));
            }
            async move {
                polled.fetch_add(1, Ordering::SeqCst);
                future::pending::<()>().await;
                drop(present);
            }
        }
    });
    until(Duration::from_secs(2), "it works in the next term", || journal.begun().len() == 2).await;
    pass(MS).await;
    assert_eq!(polled.load(Ordering::SeqCst), 1);
    assert_eq!((journal.most(), journal.present()), (1, 1));
    assert_eq!(journal.cancelled().len(), 0);
}

/// Work that fails because its term is over has not failed: the candidate does not pause.
#[tokio::test(start_paused = true)]
async fn work_ended_by_loss_restarts_at_once() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let clock = SteppedClock::new();
    let builder = builder("a").clock(Arc::new(clock.clone()));
    let _a = lead_with(&server, "a", builder, |_, leader| {
        let journal = journal.clone();
        move |_, term| {
            let (present, leader, clock) = (journal.begin(&term), leader.clone(), clock.clone());
            let first = journal.begun().len() == 1;
            async move {
                let _present = present;
                sleep(SOON).await;
                if first {
                    clock.step(Duration::from_secs(11));
                }
                assert!(leader.can_write(), "the candidate leads");
                future::pending::<()>().await;
            }
        }
    });
    until(FIRST, "the work runs", || journal.present() == 1).await;
    until(3 * SOON, "it works again at once", || journal.begun().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn s10_dead_election_gives_grace_and_is_reported() {
    for deaf in [true, false] {
        let server = ApiServer::new();
        let journal = Journal::default();
        let breaks = Arc::new(AtomicBool::new(false));
        let election = flawed(&server, "a", Flaw::Panics(breaks.clone()));
        let leader = election.candidate();
        let run = if deaf {
            tokio::spawn(election.run_while_leading(future::pending(), journal.deaf()))
        } else {
            tokio::spawn(election.run_while_leading(future::pending(), journal.obedient(SOON)))
        };
        until(FIRST, "the work runs", || journal.present() == 1).await;
        breaks.store(true, Ordering::SeqCst);
        let ended: ErrElectionEnded =
            within(Duration::from_secs(8), "it ends", run).await.unwrap().unwrap_err();
        assert!(ended.to_string().contains("ended without an order to stop"));
        let took = journal.ended()[0].duration_since(journal.cancelled()[0]);
        let expected = if deaf { Duration::from_secs(5) } else { SOON };
        assert!(took >= expected && took <= expected + 5 * MS, "{took:?}");
        assert!(!leader.is_leader());
        assert_eq!(leader.ended().await, Err(ended));
    }
}

#[tokio::test(start_paused = true)]
async fn s10_dropping_future_drops_work_and_closes_gate() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let a = lead(&server, "a", journal.deaf());
    until(FIRST, "the work runs", || journal.present() == 1).await;
    a.run.abort();
    let _ = a.run.await;
    assert_eq!(journal.present(), 0);
    assert!(!a.leader.can_write() && a.leader.ended().await.is_err());
    assert!(is_not_leader(&write(&a.client).await));
    assert_eq!(crate::support::spec(&server)["holderIdentity"], "a", "not released: it expires");
    // The same holds before the future is first polled.
    let election = candidate(&server, "b");
    let leader = election.candidate();
    drop(election.run_while_leading(future::pending(), journal.deaf()));
    assert!(leader.ended().await.is_err());
}
