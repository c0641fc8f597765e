//! A shutdown ends the work first, then its writes, then the lease.

use super::support::{Journal, Runs, lead, lead_with};
use crate::support::{
    FIRST, LEASE, SKEW, SOON, builder, candidate, is_cut_off, is_not_leader, lease_writes, parts, pass, spec,
    steal, until, within, write,
};
use futures_util::FutureExt;
use kube_leader_gate::{
    CancellationToken,
    election::LeaseEnd,
    testing::{ApiServer, Fault, WriteRecord},
};
use std::{
    cell::Cell,
    future,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

const GRACE: Duration = Duration::from_secs(20);

fn release(server: &ApiServer) -> WriteRecord {
    let last = lease_writes(server, "a").pop().expect("a has written");
    assert_eq!(last.lease.as_ref().unwrap().holder_identity, "", "a has released the lease");
    last
}

fn reviews(server: &ApiServer) -> Vec<WriteRecord> {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "tokenreviews");
    log
}

/// A candidate whose work writes once a second, for this long after the shutdown began.
fn writing(server: &ApiServer, journal: &Journal, after: Duration) -> Runs {
    lead_with(server, "a", builder("a").grace(GRACE), |client, _| {
        let journal = journal.clone();
        move |token: CancellationToken, term| {
            let (present, client) = (journal.begin(&term), client.clone());
            async move {
                let busy = async {
                    loop {
                        write(&client).await.expect("the gate is open for the work");
                        sleep(Duration::from_secs(1)).await;
                    }
                };
                let over = async {
                    present.until_cancelled(&token).await;
                    sleep(after).await;
                };
                tokio::select! {
                    () = over => {}
                    () = busy => {}
                }
                write(&client).await.expect("the last write passes");
                drop(present);
            }
        }
    })
}

/// Longer than the lease would last without a renewal.
#[tokio::test(start_paused = true)]
async fn s4_shutdown_lets_work_finish_before_release() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let a = writing(&server, &journal, Duration::from_secs(18));
    until(FIRST, "the work runs", || journal.present() == 1).await;
    pass(Duration::from_secs(3)).await;
    a.shutdown.cancel();
    let stopped = within(Duration::from_secs(19), "the candidate stops", a.run).await.unwrap();
    assert_eq!(stopped, Ok(LeaseEnd::Released));
    assert_eq!(a.leader.ended().await, Ok(LeaseEnd::Released));
    let (released, written) = (release(&server), reviews(&server));
    assert!(written.len() >= 21 && written.iter().all(WriteRecord::took_effect), "{}", written.len());
    assert!(written.iter().all(|write| write.completed.unwrap() < released.received), "released last");
    assert!(released.received.at >= journal.ended()[0]);
    assert!(is_not_leader(&write(&a.client).await));
}

#[tokio::test(start_paused = true)]
async fn work_that_ignores_shutdown_is_dropped_after_grace() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let a = lead_with(&server, "a", builder("a").grace(GRACE), |_, _| journal.deaf());
    until(FIRST, "the work runs", || journal.present() == 1).await;
    a.shutdown.cancel();
    let began = Instant::now();
    assert_eq!(within(GRACE + SOON, "the candidate stops", a.run).await.unwrap(), Ok(LeaseEnd::Released));
    assert!(journal.ended()[0].duration_since(began) >= GRACE, "the whole of it: the lease is still renewed");
    assert!(release(&server).received.at >= journal.ended()[0]);
}

/// Work that exceeds its grace has an open write. Only that write may finish.
#[tokio::test(start_paused = true)]
async fn s4_write_may_finish_after_work_grace_ends() {
    for (needs, finishes) in [(5, true), (60, false)] {
        let server = ApiServer::new();
        let slow = server.inject(Fault::delay_before(Duration::from_secs(needs)).resource("tokenreviews"));
        let journal = Journal::default();
        let results = Arc::new(Mutex::new(Vec::new()));
        let a = lead_with(&server, "a", builder("a").grace(Duration::from_secs(1)), |client, _| {
            let (journal, results) = (journal.clone(), results.clone());
            move |token: CancellationToken, term| {
                let (present, client, results) = (journal.begin(&term), client.clone(), results.clone());
                async move {
                    present.until_cancelled(&token).await;
                    let written = write(&client).await;
                    results.lock().unwrap().push(written.map_err(|error| error.to_string()));
                    let another = write(&client).await;
                    assert!(is_not_leader(&another) || is_cut_off(&another));
                    future::pending::<()>().await;
                }
            }
        });
        until(FIRST, "the work runs", || journal.present() == 1).await;
        a.shutdown.cancel();
        until(SOON, "the write is under way", || slow.hits() == 1).await;
        let began = Instant::now();
        let stopped = within(Duration::from_secs(17), "the candidate stops", a.run).await.unwrap();
        assert_eq!(journal.present(), 0);
        assert_eq!(slow.hits(), 1, "the gate is closed to all else");
        if finishes {
            assert_eq!(stopped, Ok(LeaseEnd::Released));
            assert_eq!(*results.lock().unwrap(), [Ok(())]);
            assert!(reviews(&server)[0].completed.unwrap() < release(&server).received);
        } else {
            assert_eq!(stopped, Ok(LeaseEnd::Released));
            let least = Duration::from_secs(11) + SKEW;
            assert!(began.elapsed() + SOON >= least, "1 s to end, 10 s to drain, 5 s until it cannot land");
            assert!(release(&server).received.at + SOON >= began + least);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn follower_stops_at_shutdown() {
    let server = ApiServer::new();
    let (first, second) = (Journal::default(), Journal::default());
    let _a = lead(&server, "a", first.obedient(Duration::ZERO));
    until(FIRST, "a works", || first.present() == 1).await;
    let b = lead(&server, "b", second.deaf());
    until(SOON, "b knows a", || b.leader.holder().is_some()).await;
    b.shutdown.cancel();
    assert_eq!(within(SOON, "the candidate stops", b.run).await.unwrap(), Ok(LeaseEnd::Released));
    assert_eq!(spec(&server)["holderIdentity"], "a");
    assert!(second.begun().is_empty());
}

/// controller-runtime #2719: a shutdown started the leader's work.
#[tokio::test(start_paused = true)]
async fn shutdown_starts_no_work() {
    // The shutdown comes at the start, and at each step of taking over from a leader that stops at the same time.
    for delay in 0..30 {
        let server = ApiServer::new();
        let (first, second) = (Journal::default(), Journal::default());
        let a = lead(&server, "a", first.obedient(Duration::ZERO));
        until(FIRST, "a works", || first.present() == 1).await;
        let b = lead(&server, "b", second.obedient(Duration::ZERO));
        pass(SOON).await;
        a.shutdown.cancel();
        pass(Duration::from_micros(200 * delay)).await;
        b.shutdown.cancel();
        let before = second.begun().len();
        assert_eq!(within(SOON, "a stops", a.run).await.unwrap(), Ok(LeaseEnd::Released));
        assert_eq!(within(SOON, "b stops", b.run).await.unwrap(), Ok(LeaseEnd::Released));
        assert_eq!(second.begun().len(), before, "delay {delay}");
        assert_eq!(spec(&server)["holderIdentity"], "");
    }
    let server = ApiServer::new();
    let journal = Journal::default();
    let run = candidate(&server, "a").run_while_leading(future::ready(()), journal.deaf());
    assert_eq!(parts(within(SOON, "the candidate stops", run).await), Ok(((), LeaseEnd::Released)));
    assert!(journal.begun().is_empty());
}

/// The candidate notices the gain and the shutdown at the same moment.
#[tokio::test(start_paused = true)]
async fn shutdown_wins_over_simultaneous_gain() {
    let server = ApiServer::new();
    let (journal, shutdown) = (Journal::default(), CancellationToken::new());
    let election = candidate(&server, "a");
    let leader = election.candidate();
    let mut run = pin!(election.run_while_leading(shutdown.cancelled(), journal.deaf()));
    assert!((&mut run).now_or_never().is_none());
    within(FIRST, "the candidate leads", leader.elected()).await;
    shutdown.cancel();
    assert_eq!(parts(within(SOON, "the candidate stops", run).await), Ok(((), LeaseEnd::Released)));
    assert!(journal.begun().is_empty());
    assert_eq!(spec(&server)["holderIdentity"], "");
}

/// The work exists, but has not run yet when the shutdown comes.
#[tokio::test(start_paused = true)]
async fn work_not_yet_polled_never_starts_after_shutdown() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let (shutdown, runs) = (CancellationToken::new(), Cell::new(false));
    let run = candidate(&server, "a").run_while_leading(shutdown.cancelled(), |_, term| {
        let (present, runs) = (journal.begin(&term), &runs);
        shutdown.cancel();
        async move {
            let _present = present;
            runs.set(true);
        }
    });
    assert_eq!(parts(within(FIRST, "the candidate stops", run).await), Ok(((), LeaseEnd::Released)));
    assert_eq!((journal.begun().len(), journal.present()), (1, 0));
    assert!(!runs.get());
    assert_eq!(spec(&server)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn loss_during_shutdown_shortens_grace_and_skips_release() {
    for stolen in [true, false] {
        let server = ApiServer::new();
        let journal = Journal::default();
        let a = lead_with(&server, "a", builder("a").grace(GRACE), |_, _| journal.deaf());
        until(FIRST, "the work runs", || journal.present() == 1).await;
        a.shutdown.cancel();
        pass(Duration::from_secs(2)).await;
        let (lost, written) = (Instant::now(), lease_writes(&server, "a").len());
        if stolen {
            steal(&server);
        } else {
            server.delete("outsider", LEASE).unwrap();
        }
        let stopped = within(GRACE, "the candidate stops", a.run).await.unwrap();
        assert_eq!(stopped, Ok(LeaseEnd::Released), "another candidate's, or deleted");
        let lived = journal.ended()[0].duration_since(lost);
        assert!(lived >= Duration::from_secs(5) && lived < Duration::from_secs(5) + SOON, "{lived:?}");
        assert_eq!(lease_writes(&server, "a").len(), written, "nothing written any more");
        assert_eq!(journal.begun().len(), 1);
        assert_eq!(server.object(LEASE).is_some(), stolen);
    }
}

/// The shutdown comes while the work of a lost term is ending.
#[tokio::test(start_paused = true)]
async fn shutdown_after_loss_waits_for_work() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let a = lead(&server, "a", journal.obedient(Duration::from_secs(3)));
    until(FIRST, "the work runs", || journal.present() == 1).await;
    server.delete("outsider", LEASE).unwrap();
    pass(Duration::from_secs(1)).await;
    a.shutdown.cancel();
    pass(Duration::from_secs(1)).await;
    assert_eq!(journal.present(), 1, "it has its time");
    assert_eq!(
        within(Duration::from_secs(2), "the candidate stops", a.run).await.unwrap(),
        Ok(LeaseEnd::Released)
    );
    assert_eq!((journal.begun().len(), journal.present()), (1, 0));
    assert!(server.object(LEASE).is_none(), "nothing is acquired any more");
}
