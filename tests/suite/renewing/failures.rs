//! Rule S9: what a leader does after a failed renewal.

use crate::support::{SOON, leading, pass, until};
use futures_util::{FutureExt, StreamExt};
use kube_leader_gate::{
    LeaseTiming,
    testing::{ApiServer, Fault},
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Only calls that name the lease. No watch.
fn calls(fault: Fault) -> Fault {
    fault.path(|path| path.ends_with("/leases/operator"))
}

/// A read renews nothing, and a server that answers no read may still answer a write.
#[tokio::test(start_paused = true)]
async fn s9_failed_renewal_is_followed_by_renewal() {
    let failures = [
        Fault::status(500),
        Fault::status(429),
        Fault::drop_before(),
        Fault::drop_after(),
        Fault::hang_before(),
    ];
    for failure in failures {
        for no_read in [Fault::status(500), Fault::hang_before()] {
            let server = ApiServer::new();
            let (a, _) = leading(&server, "a").await;
            let term = a.candidate().term();
            let failed = server.inject(failure.clone().verb("update").resource("leases").times(1));
            let reads = server.inject(no_read.verb("get").resource("leases"));
            until(SECOND * 3, "a renewal fails", || failed.hits() == 1).await;
            pass(SECOND * 12).await;
            assert_eq!(a.candidate().term(), term, "{failure:?}, {} reads", reads.hits());
            assert_eq!(reads.hits(), 0, "{failure:?}: it reads");
        }
    }
}

/// Without a watch, a renewal whose answer was lost makes the next one conflict. Only that is a reason to read.
#[tokio::test(start_paused = true)]
async fn s9_conflict_is_followed_by_read_and_renewal() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let (a, _) = leading(&server, "a").await;
    let term = a.candidate().term();
    let unheard = server.inject(Fault::hang_after().verb("update").resource("leases").times(1));
    let before = server.reads("a", "get", "leases");
    until(SECOND * 3, "a renewal lands unheard", || unheard.hits() == 1).await;
    pass(SECOND * 12).await;
    assert_eq!(a.candidate().term(), term);
    assert_eq!(server.reads("a", "get", "leases"), before + 1);
}

/// Three calls hang, and every later answer takes most of the call timeout. The timing leaves room for exactly that.
#[tokio::test(start_paused = true)]
async fn s9_slow_answers_after_hung_calls_keep_term() {
    for round in 0..20 {
        let server = ApiServer::new();
        let (a, _) = leading(&server, "a").await;
        let term = a.candidate().term();
        let mut changes = a.candidate().changes();
        assert!(changes.next().await.is_some(), "the present state");
        let hung = server.inject(calls(Fault::hang_before()).times(3));
        let slow = LeaseTiming::fast().call_timeout().mul_f64(0.875);
        let _slow = server.inject(calls(Fault::delay_after(slow)));
        until(SECOND * 9, "three calls hang", || hung.hits() == 3).await;
        pass(SECOND * 6 + SOON).await;
        assert_eq!(a.candidate().term(), term, "round {round}");
        let seen = std::iter::from_fn(|| changes.next().now_or_never().flatten());
        assert!(seen.into_iter().all(|state| state.lost.is_none()), "round {round}");
    }
}
