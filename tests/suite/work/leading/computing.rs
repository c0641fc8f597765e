//! Work that is not polled, or that keeps its thread, while its term ends (rule S11).

use super::support::Journal;
use crate::support::{FIRST, LEASE, build, builder, candidate, parts, pass, steal, until, within};
use futures_util::future::Either;
use kube_leader_gate::{
    CancellationToken, LeaseTiming,
    election::LeaseEnd,
    testing::{ApiServer, Fault},
};
use std::{
    future::{Future, pending},
    pin::pin,
    sync::mpsc,
    time::Duration,
};
use tokio::{runtime::Handle, task::spawn_blocking};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
/// For what takes a lease duration in real time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A timing for real time.
fn short() -> LeaseTiming {
    LeaseTiming::new(3 * SECOND, 2 * SECOND, 300 * MS).expect("a valid timing")
}

/// A program whose main thread runs the work and computes, and whose election runs on other threads. An outage ends the
/// term.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s11_no_term_begins_while_old_work_computes() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let election = build(&server, "a", builder("a").timing(short())).unwrap();
    let leader = election.candidate();
    let shutdown = CancellationToken::new();
    let (go_on, told) = mpsc::channel();
    let (tell, answer) = mpsc::channel();
    let (of_work, stop, candidate) = (journal.clone(), shutdown.clone(), leader.clone());
    let main = move || {
        let (of_work, candidate, told, tell) = (&of_work, &candidate, &told, &tell);
        let work = |_, term| async move {
            let _present = of_work.begin(&term);
            if of_work.begun().len() == 1 {
                told.recv_timeout(2 * PATIENCE).unwrap();
                tell.send(candidate.admit("late").is_ok()).unwrap();
            }
            pending::<()>().await;
        };
        Handle::current().block_on(election.run_while_leading(stop.cancelled(), work))
    };
    let main = spawn_blocking(main);
    until(PATIENCE, "the work computes", || journal.present() == 1).await;
    let b = build(&server, "b", builder("b").timing(short())).unwrap().start();
    let outage = server.inject(Fault::hang_before().user("a"));
    until(PATIENCE, "the term is over", || !leader.is_leader()).await;
    drop(outage);
    // Either a has contended, or b has waited for the end of the lease.
    until(PATIENCE, "a candidate leads", || leader.is_leader() || b.candidate().is_leader()).await;
    go_on.send(()).unwrap();
    let mut late = None;
    let goes_on = || {
        late = answer.try_recv().ok();
        late.is_some()
    };
    until(PATIENCE, "the work goes on", goes_on).await;
    assert_eq!(late, Some(false), "the old work may write in a later term");
    let is_dropped = || journal.present() == 0 || journal.begun().len() >= 2;
    until(PATIENCE, "the old work is dropped", is_dropped).await;
    b.stop().await;
    until(PATIENCE, "the work runs again", || journal.begun().len() >= 2).await;
    assert_eq!(journal.most(), 1);
    shutdown.cancel();
    // With so short a lease, a busy machine may lose it once more before the release.
    main.await.unwrap().expect("it was told to end").into_output();
}

/// Nothing polls the work, for example since its task is starved. Each way to lose a term, and what frees the lease.
#[tokio::test(start_paused = true)]
async fn s11_no_term_begins_before_starved_work_is_polled() {
    for loss in ["outage", "deletion", "theft"] {
        let server = ApiServer::new();
        let journal = Journal::default();
        let election = candidate(&server, "a");
        let leader = election.candidate();
        let shutdown = CancellationToken::new();
        let mut run = pin!(election.run_while_leading(shutdown.cancelled(), journal.deaf()));
        run_until(&mut run, until(FIRST, "the work runs", || journal.present() == 1)).await;
        let outage = (loss == "outage").then(|| server.inject(Fault::hang_before().user("a")));
        match loss {
            "deletion" => server.delete("outsider", LEASE).unwrap(),
            "theft" => steal(&server),
            _ => {}
        }
        until(11 * SECOND, "the term is over", || !leader.is_leader()).await;
        drop(outage);
        // Long enough for the lease of an outsider to run out.
        for _ in 0..40 {
            pass(SECOND).await;
            assert!(!leader.is_leader() && leader.admit("late").is_err(), "a new term after the {loss}");
        }
        run_until(&mut run, until(20 * SECOND, "the work runs again", || journal.begun().len() == 2)).await;
        assert_eq!(journal.most(), 1, "{loss}");
        shutdown.cancel();
        let stopped = within(20 * SECOND, "it stops", run).await;
        assert_eq!(parts(stopped), Ok(((), LeaseEnd::Released)), "{loss}");
    }
}

/// Polls `run` until `done` is ready.
async fn run_until(run: impl Future + Unpin, done: impl Future) {
    match futures_util::future::select(pin!(done), run).await {
        Either::Left(_) => {}
        Either::Right(_) => panic!("the run has ended"),
    }
}
