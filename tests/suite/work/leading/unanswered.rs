//! Writes of a term's work that ended without an answer may take effect after the work and the term.

use super::support::{Journal, Runs, SteppedClock, lead_with};
use crate::{
    support::priority::ranked,
    support::{
        FIRST, LEASE, SKEW, SOON, build, builder, candidate, gated, is_not_leader, pass, releases, until,
        within, write,
    },
};
use futures_util::FutureExt;
use kube_leader_gate::{
    CancellationToken,
    election::{ElectionBuilder, LeaseEnd, Priority},
    testing::{ApiServer, Fault},
};
use std::{
    future,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);
/// Timers fire up to a millisecond late.
const SLACK: Duration = Duration::from_millis(5);

/// The results of the work's writes, and when they came.
type Results = Arc<Mutex<Vec<(Result<(), String>, Instant)>>>;

/// Work that sends a write in its first term, waits for it even if its token is cancelled, and then runs for ever.
fn writing_on(server: &ApiServer, builder: ElectionBuilder, journal: &Journal, results: &Results) -> Runs {
    lead_with(server, "a", builder, |client, _| {
        let (journal, results) = (journal.clone(), results.clone());
        move |_, term| {
            let (present, client, results) = (journal.begin(&term), client.clone(), results.clone());
            let first = journal.begun().len() == 1;
            async move {
                let _present = present;
                if first {
                    let written = write(&client).await.map_err(|error| error.to_string());
                    results.lock().unwrap().push((written, Instant::now()));
                }
                future::pending::<()>().await;
            }
        }
    })
}

fn low() -> ElectionBuilder {
    builder("a").priority(Priority::ranked("low", ["high", "low"]).unwrap())
}

/// A preferred candidate asks for the lease: the work is polled until its write is answered. Its successor waits for that
/// answer, and no longer.
#[tokio::test(start_paused = true)]
async fn s4_work_that_yields_lives_until_its_write_ends() {
    let server = ApiServer::new();
    let slow = server.inject(Fault::delay_before(SECOND * 7).user("a").resource("tokenreviews").times(1));
    let (journal, results) = (Journal::default(), Results::default());
    let a = writing_on(&server, low(), &journal, &results);
    until(FIRST, "the write is under way", || slow.hits() == 1).await;
    let high = ranked(&server, "b", "high").start();
    until(SOON, "the gate is closed", || !a.leader.can_write()).await;
    assert!(is_not_leader(&write(&a.client).await));
    within(SECOND * 8, "b leads", high.candidate().elected()).await;
    let (written, at) = results.lock().unwrap().pop().expect("the work has seen the answer");
    assert_eq!(written, Ok(()));
    assert!(at.elapsed() < SOON, "b waits no longer than for the answer");
    until(SOON, "the work is dropped", || journal.present() == 0).await;
}

/// A hanging write is cut off by the deadline. The lease is another's only when the write can no longer take effect.
#[tokio::test(start_paused = true)]
async fn s4_hanging_write_of_work_that_yields_keeps_the_lease() {
    let server = ApiServer::new();
    let hang = server.inject(Fault::hang_before().user("a").resource("tokenreviews"));
    let (journal, results) = (Journal::default(), Results::default());
    let a = writing_on(&server, low(), &journal, &results);
    until(FIRST, "the write is under way", || hang.hits() == 1).await;
    let began = Instant::now();
    let high = ranked(&server, "b", "high").start();
    until(SECOND * 12, "the write is cut off", || a.leader.leadership().writes_under_way() == 0).await;
    let cut_off = Instant::now();
    assert!(cut_off - began > SECOND * 7, "it has its time: {:?}", cut_off - began);
    within(SECOND * 16, "b leads", high.candidate().elected()).await;
    assert!(cut_off.elapsed() + SLACK >= SKEW, "b leads {:?} after the write's end", cut_off.elapsed());
}

/// The work of the next term begins when the writes of the last term can no longer take effect.
#[tokio::test(start_paused = true)]
async fn s4_new_work_waits_for_unanswered_write() {
    for how in ["deleted", "expired", "frozen"] {
        let server = ApiServer::new();
        let hang = server.inject(Fault::hang_before().resource("tokenreviews").times(1));
        let (journal, results, clock) = (Journal::default(), Results::default(), SteppedClock::new());
        let builder = builder("a").grace(Duration::ZERO).clock(Arc::new(clock.clone()));
        let a = writing_on(&server, builder, &journal, &results);
        until(FIRST, "the write is under way", || hang.hits() == 1).await;
        let outage = (how == "expired").then(|| server.inject(Fault::drop_before().resource("leases")));
        match how {
            "deleted" => server.delete("outsider", LEASE).unwrap(),
            "frozen" => clock.step(SECOND * 11),
            _ => {}
        }
        until(SECOND * 12, "the write is cut off", || a.leader.leadership().writes_under_way() == 0).await;
        let cut_off = Instant::now();
        drop(outage);
        until(SECOND * 12, "the work runs again", || journal.begun().len() == 2).await;
        let after = journal.begun()[1].1.duration_since(cut_off);
        assert!(after + SLACK >= SKEW, "{how}: it works again {after:?} after the write's end");
        assert_eq!(journal.most(), 1);
    }
}

/// A write of the last term that its owner no longer polls, and drops late or never. It was sent, and may take
/// effect.
#[tokio::test(start_paused = true)]
async fn s4_new_work_waits_for_unpolled_write() {
    for dropped_after in [None, Some(SECOND * 3)] {
        let server = ApiServer::new();
        let _hang = server.inject(Fault::hang_before().resource("tokenreviews").times(1));
        let (journal, lying) = (Journal::default(), Arc::new(Mutex::new(None)));
        let a = lead_with(&server, "a", builder("a"), |client, _| {
            let (journal, lying) = (journal.clone(), lying.clone());
            move |token: CancellationToken, term| {
                let (present, client, lying) = (journal.begin(&term), client.clone(), lying.clone());
                let first = journal.begun().len() == 1;
                async move {
                    let _present = present;
                    if first {
                        let mut writing = async move { write(&client).await }.boxed();
                        assert!(timeout(SOON, &mut writing).await.is_err(), "the write hangs");
                        *lying.lock().unwrap() = Some(writing);
                    }
                    token.cancelled().await;
                }
            }
        });
        until(FIRST, "the write is left lying", || lying.lock().unwrap().is_some()).await;
        server.delete("outsider", LEASE).unwrap();
        until(SOON, "the gate is closed", || !a.leader.can_write()).await;
        let mut end = Instant::now();
        if let Some(after) = dropped_after {
            pass(after).await;
            lying.lock().unwrap().take();
            end = Instant::now();
        }
        until(SECOND * 12, "the work runs again", || journal.begun().len() == 2).await;
        let after = journal.begun()[1].1.saturating_duration_since(end);
        assert!(after + SLACK >= SKEW, "{dropped_after:?}: it works again {after:?} after the write's end");
    }
}

/// Work drops its own write and ends. No candidate, including this one, leads before that write can no longer take
/// effect.
#[tokio::test(start_paused = true)]
async fn s4_write_dropped_by_work_delays_next_term() {
    for alone in [true, false] {
        let server = ApiServer::new();
        let journal = Journal::default();
        let _hang = server.inject(Fault::hang_before().user("a").resource("tokenreviews").times(1));
        let dropped = Arc::new(Mutex::new(None));
        let _a = lead_with(&server, "a", builder("a"), |client, _| {
            let (journal, dropped) = (journal.clone(), dropped.clone());
            move |_: CancellationToken, term| {
                let (present, client, dropped) = (journal.begin(&term), client.clone(), dropped.clone());
                let first = journal.begun().len() == 1;
                async move {
                    let _present = present;
                    if !first {
                        future::pending::<()>().await;
                    }
                    assert!(timeout(SECOND, write(&client)).await.is_err(), "the write hangs");
                    *dropped.lock().unwrap() = Some(Instant::now());
                }
            }
        });
        until(FIRST, "the work runs", || journal.present() == 1).await;
        let b = (!alone).then(|| build(&server, "b", builder("b")).unwrap().start());
        until(SECOND * 2, "the work has ended", || journal.present() == 0).await;
        let dropped = dropped.lock().unwrap().expect("it has dropped its write");
        match b {
            Some(b) => drop(within(SKEW + SOON, "b leads", b.candidate().elected()).await),
            None => until(SKEW + SECOND * 2, "the work runs again", || journal.begun().len() == 2).await,
        }
        assert!(dropped.elapsed() + SLACK >= SKEW, "alone: {alone}, {:?} after the drop", dropped.elapsed());
    }
}

/// The work drops its write during a shutdown: the release waits.
#[tokio::test(start_paused = true)]
async fn s4_shutdown_waits_for_write_dropped_by_work() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let _hang = server.inject(Fault::hang_before().user("a").resource("tokenreviews"));
    let a = lead_with(&server, "a", builder("a"), |client, _| {
        let journal = journal.clone();
        move |token: CancellationToken, term| {
            let (present, client) = (journal.begin(&term), client.clone());
            async move {
                tokio::select! {
                    () = present.until_cancelled(&token) => {}
                    _ = write(&client) => unreachable!("the write hangs"),
                }
            }
        }
    });
    until(FIRST, "the write is under way", || a.leader.leadership().writes_under_way() == 1).await;
    let b = candidate(&server, "b");
    let b_client = gated(&server, &b, "b");
    let b = b.start();
    a.shutdown.cancel();
    let dropped = Instant::now();
    within(SKEW + SOON, "b leads", b.candidate().elected()).await;
    let after = releases(&server, "a")[0].received.at - dropped;
    assert!(after + SLACK >= SKEW, "released {after:?} after the write was dropped");
    write(&b_client).await.unwrap_or_else(|error| panic!("b leads: {error}"));
    assert_eq!(a.run.await.unwrap(), Ok(LeaseEnd::Released));
}
