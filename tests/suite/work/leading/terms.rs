//! Work runs once for each term, with an open gate, and never twice at once.

use super::support::{Journal, SteppedClock, lead, lead_with};
use crate::support::{
    FIRST, LEASE, SOON, always_held_by, build, builder, candidate, gated, is_not_leader, lease_writes, parts,
    pass, spec, steal, until, within, write,
};
use kube_leader_gate::{election::LeaseEnd, testing::ApiServer};
use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

#[tokio::test(start_paused = true)]
async fn work_starts_each_term_with_open_gate() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (notes, mut obedient) = (seen.clone(), journal.obedient(Duration::ZERO));
    let a = lead_with(&server, "a", builder("a"), |client, leader| {
        move |token, term| {
            notes.lock().unwrap().push((leader.can_write(), leader.term() == Some(term.clone())));
            let (client, wait) = (client.clone(), obedient(token, term));
            async move {
                write(&client).await.expect("the candidate leads");
                wait.await;
            }
        }
    });
    until(FIRST, "the work runs", || journal.present() == 1).await;
    for _ in 0..3 {
        let begun = journal.begun().len();
        server.delete("outsider", LEASE).unwrap();
        until(2 * SOON, "the work runs again", || journal.begun().len() > begun).await;
    }
    a.shutdown.cancel();
    assert_eq!(within(SOON, "the candidate stops", a.run).await.unwrap(), Ok(LeaseEnd::Released));
    assert_eq!(*seen.lock().unwrap(), [(true, true); 4]);
    assert_eq!((journal.most(), journal.present()), (1, 0));
    let mut terms: Vec<_> = journal.begun().into_iter().map(|(term, _)| term).collect();
    terms.dedup();
    assert_eq!(terms.len(), 4, "each in a term of its own");
}

/// Only the future itself holds the work. So the work may borrow from the caller, and need not be `Send`.
#[tokio::test(start_paused = true)]
async fn work_may_borrow_and_be_non_send() {
    let server = ApiServer::new();
    let (shutdown, runs) = (kube_leader_gate::CancellationToken::new(), Rc::new(Cell::new(0)));
    let counter = &runs;
    let run = candidate(&server, "a").run_while_leading(shutdown.cancelled(), |_, _| {
        let (counter, shutdown) = (Rc::clone(counter), &shutdown);
        async move {
            counter.set(counter.get() + 1);
            shutdown.cancel();
        }
    });
    assert_eq!(parts(within(FIRST, "the candidate stops", run).await), Ok(((), LeaseEnd::Released)));
    assert_eq!(runs.get(), 1);
}

/// The lease comes back at once while the old work is still busy. The old work must not see the new term's open gate,
/// and no new work may start.
#[tokio::test(start_paused = true)]
async fn s11_regained_term_waits_for_old_work() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let a = lead(&server, "a", journal.obedient(Duration::from_secs(3)));
    until(FIRST, "the work runs", || journal.present() == 1).await;
    server.delete("outsider", LEASE).unwrap();
    until(Duration::from_millis(5), "the token is cancelled", || !journal.cancelled().is_empty()).await;
    pass(Duration::from_millis(2900)).await;
    assert_eq!((journal.present(), journal.begun().len()), (1, 1));
    assert!(server.object(LEASE).is_none(), "it does not contend meanwhile: others are ready");
    assert!(is_not_leader(&write(&a.client).await));
    until(2 * SOON, "the work runs again", || journal.begun().len() == 2).await;
    assert_eq!(journal.most(), 1);
    assert!(journal.begun()[1].1 >= journal.ended()[0]);
}

/// The same after an expiry: the lease was this candidate's throughout, and others count on its remaining time.
#[tokio::test(start_paused = true)]
async fn s11_kept_lease_is_not_released_while_work_ends() {
    let server = ApiServer::new();
    let (journal, clock) = (Journal::default(), SteppedClock::new());
    let election = build(&server, "a", builder("a").clock(Arc::new(clock.clone()))).unwrap();
    let starved = Cell::new(false);
    let mut run =
        pin!(election.run_while_leading(std::future::pending(), journal.obedient(Duration::from_secs(3))));
    let run = poll_fn(|cx| if starved.get() { Poll::Pending } else { run.as_mut().poll(cx) });
    let script = async {
        until(FIRST, "the work runs", || journal.present() == 1).await;
        let _b = lead(&server, "b", journal.obedient(Duration::ZERO));
        pass(SOON).await;
        starved.set(true);
        let renewals = lease_writes(&server, "a").len();
        clock.step(Duration::from_secs(11));
        pass(Duration::from_secs(3)).await;
        assert!(lease_writes(&server, "a").len() <= renewals + 1, "it renews in vain at most");
        assert!(always_held_by(&server, "a"), "it keeps the lease");
        starved.set(false);
        until(Duration::from_secs(6), "some work runs again", || journal.begun().len() == 2).await;
        assert_eq!(journal.most(), 1);
    };
    tokio::select! {
        _ = run => panic!("it goes on"),
        () = script => {}
    }
}

/// A term begins and ends before the future is polled again. No work has begun in it.
#[tokio::test(start_paused = true)]
async fn unpolled_run_works_in_the_term_after_a_missed_one() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let election = candidate(&server, "a");
    let leader = election.candidate();
    let starved = Cell::new(false);
    let mut run =
        pin!(election.run_while_leading(std::future::pending(), journal.obedient(Duration::from_secs(2))));
    let run = poll_fn(|cx| if starved.get() { Poll::Pending } else { run.as_mut().poll(cx) });
    let script = async {
        pass(Duration::from_millis(1)).await;
        starved.set(true);
        until(FIRST, "a term begins", || leader.can_write()).await;
        steal(&server);
        until(SOON, "it is over", || !leader.is_leader()).await;
        starved.set(false);
        until(Duration::from_secs(20), "the work runs", || journal.present() == 1).await;
    };
    tokio::select! {
        _ = run => panic!("it goes on"),
        () = script => {}
    }
}

/// The term ends while the future is not polled, for example because another task of its thread is busy. While the old
/// work ends, the candidate leaves the lease to others.
#[tokio::test(start_paused = true)]
async fn s11_no_term_begins_unnoticed_by_old_work() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let election = candidate(&server, "a");
    let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
    let starved = Cell::new(false);
    let mut run =
        pin!(election.run_while_leading(std::future::pending(), journal.obedient(Duration::from_secs(4))));
    let run = poll_fn(|cx| if starved.get() { Poll::Pending } else { run.as_mut().poll(cx) });
    let script = async {
        until(FIRST, "the work runs", || journal.present() == 1).await;
        let first = leader.term();
        starved.set(true);
        server.delete("outsider", LEASE).unwrap();
        pass(Duration::from_secs(3)).await;
        assert_eq!(leader.term(), None);
        starved.set(false);
        until(SOON, "the token is cancelled", || !journal.cancelled().is_empty()).await;
        assert!(is_not_leader(&write(&client).await), "the old work has no part in the new term");
        // Its grace ends 5 s after the loss.
        pass(Duration::from_millis(1900)).await;
        assert_eq!((journal.begun().len(), journal.present()), (1, 1));
        assert!(server.object(LEASE).is_none(), "for others to take");
        until(2 * SOON, "the work runs again", || journal.begun().len() == 2).await;
        assert_ne!(Some(journal.begun()[1].0.clone()), first);
        assert!(leader.can_write());
        assert_eq!((journal.most(), spec(&server)["holderIdentity"].as_str()), (1, Some("a")));
    };
    tokio::select! {
        _ = run => panic!("it goes on"),
        () = script => {}
    }
}
