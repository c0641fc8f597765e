//! A workload that exceeds its grace keeps its writes: it is polled behind the closed gate until they are answered.

use crate::support::{
    SKEW, SOON, candidate, gated, is_not_leader, lease_writes, parts, pass, releases, until, within, write,
};
use kube_leader_gate::{
    election::LeaseEnd,
    testing::{ApiServer, Fault},
};
use std::{future::pending, time::Duration};
use tokio::time::Instant;

const GRACE: Duration = Duration::from_secs(5);

/// The workload writes when the shutdown comes, ends with that write's answer, and returns its output.
#[tokio::test(start_paused = true)]
async fn s4_workload_finishes_its_write_after_grace() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
    let _slow = server.inject(Fault::delay_before(Duration::from_secs(12)).resource("tokenreviews").times(1));
    let mut rejected = false;
    // On the heap: it holds two writes.
    let workload = Box::pin(async {
        let other = async {
            pass(GRACE + SOON).await;
            assert!(leader.is_leader() && !leader.can_write(), "the candidate drains");
            rejected = is_not_leader(&write(&client).await);
        };
        leader.elected().await;
        let (written, ()) = tokio::join!(write(&client), other);
        written.map_err(|error| error.to_string())
    });
    let shutdown = leader.elected();
    let run = election.run_until(async { drop(shutdown.await) }, workload);
    let finished = within(Duration::from_secs(14), "the run ends", run).await;
    assert_eq!(parts(finished), Ok((Some(Ok(())), LeaseEnd::Released)));
    assert!(rejected, "the gate is closed to what it writes after its grace");
    let written = server.write_log().into_iter().find(|write| write.resource == "tokenreviews").unwrap();
    let released = &releases(&server, "a")[0];
    assert!(written.completed.unwrap() < released.received, "released after the write");
    assert!(released.received.at - written.completed.unwrap().at < SOON, "and at once");
    assert!(lease_writes(&server, "a").len() >= 6, "renewed meanwhile");
}

/// The workload is dropped once its writes are answered, even if it goes on.
#[tokio::test(start_paused = true)]
async fn s4_workload_is_dropped_once_writes_are_answered() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
    let _slow = server.inject(Fault::delay_before(Duration::from_secs(9)).resource("tokenreviews").times(1));
    let mut answered = None;
    let workload = async {
        leader.elected().await;
        let written = write(&client).await;
        answered = Some((written.is_ok(), Instant::now()));
        pending::<()>().await;
    };
    let run = election.run_until(async { drop(leader.elected().await) }, workload);
    let finished = within(Duration::from_secs(10), "the run ends", run).await;
    assert_eq!(parts(finished), Ok((None, LeaseEnd::Released)));
    let (is_ok, at) = answered.expect("it has seen the answer");
    assert!(is_ok && at.elapsed() < SOON);
    assert_eq!(releases(&server, "a").len(), 1);
}

/// A write that hangs is cut off after the drain timeout, and counts as unanswered.
#[tokio::test(start_paused = true)]
async fn s4_workload_with_hanging_write_is_dropped_after_drain() {
    struct Dropped<'a>(&'a mut Option<Instant>);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            *self.0 = Some(Instant::now());
        }
    }
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let mut dropped = None;
    let workload = async {
        let _dropped = Dropped(&mut dropped);
        leader.elected().await;
        let _ = write(&client).await;
        pending::<()>().await;
    };
    let run = election.run_until(async { drop(leader.elected().await) }, workload);
    let watched = async {
        until(GRACE, "the write is under way", || hang.hits() == 1).await;
        Instant::now()
    };
    let (finished, began) = tokio::join!(within(GRACE * 5, "the run ends", run), watched);
    assert_eq!(parts(finished), Ok((None, LeaseEnd::Released)));
    let lived = dropped.expect("the workload is dropped") - began;
    assert!(
        lived + Duration::from_millis(10) >= GRACE * 3 && lived < GRACE * 3 + SOON,
        "5 s to end, 10 s to drain: {lived:?}"
    );
    let after = releases(&server, "a")[0].received.at - (began + lived);
    assert!(after + Duration::from_millis(10) >= SKEW, "released {after:?} after it was dropped");
}
