//! A preempted holder does not acknowledge while one of its own writes may still take effect.

use crate::{
    priority::{hammer, leading_as, ranked, writers},
    support::{SKEW, SOON, begin_write, gated, lease_writes, pass, spec, until, within, write},
};
use kube_leader_gate::{
    Candidate,
    testing::{ApiServer, Fault},
};
use std::time::Duration;
use tokio::{task::JoinSet, time::Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Waits until it leads. Returns how long after `end` that was.
async fn led_after(leader: &Candidate, end: Instant) -> Duration {
    within(SECOND * 16, "the higher one leads", leader.elected()).await;
    end.elapsed()
}

fn is_skew(after: Duration) -> bool {
    after + Duration::from_millis(5) >= SKEW && after < SKEW + SOON
}

/// The caller drops the write while the successor waits.
#[tokio::test(start_paused = true)]
async fn s4_successor_waits_for_write_dropped_after_preemption() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let _hang = server.inject(Fault::hang_before().user("a").resource("tokenreviews"));
    let writing = begin_write(low.candidate(), &low_client).await;
    let high = ranked(&server, "b", "high").start();
    until(SOON, "the lease is taken", || spec(&server)["holderIdentity"] == "b").await;
    pass(SECOND).await;
    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    let after = led_after(high.candidate(), Instant::now()).await;
    assert!(is_skew(after), "b leads {after:?} after the drop");
}

/// The write ended before the preemption.
#[tokio::test(start_paused = true)]
async fn s4_successor_waits_for_unanswered_write_before_preemption() {
    for fault in [Fault::drop_before, Fault::drop_after] {
        let server = ApiServer::new();
        let (_low, low_client) = leading_as(&server, "a", "low").await;
        let fault = server.inject(fault().user("a").resource("tokenreviews"));
        write(&low_client).await.expect_err("its connection breaks");
        drop(fault);
        let end = Instant::now();
        pass(SECOND).await;
        let high = ranked(&server, "b", "high").start();
        let after = led_after(high.candidate(), end).await;
        assert!(is_skew(after), "b leads {after:?} after the write's end");
    }
}

/// Meanwhile the holder in the lease does not change, the old holder writes nothing, and it acknowledges in the end.
#[tokio::test(start_paused = true)]
async fn s4_preempted_holder_waits_before_acknowledging() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let hang = server.inject(Fault::hang_before().user("a").resource("tokenreviews"));
    let writing = begin_write(low.candidate(), &low_client).await;
    writing.abort();
    let _ = writing.await;
    drop(hang);
    let end = Instant::now();
    let election = ranked(&server, "b", "high");
    let mut both = JoinSet::new();
    hammer(&mut both, low_client);
    hammer(&mut both, gated(&server, &election, "b"));
    pass(SOON).await;
    let high = election.start();
    let after = led_after(high.candidate(), end).await;
    assert!(is_skew(after), "b leads {after:?} after the write's end");
    pass(SOON).await;
    assert_eq!(writers(&server), ["a", "b"]);
    let acknowledged = lease_writes(&server, "a").pop().unwrap().received.at - end;
    assert!(is_skew(acknowledged), "acknowledged {acknowledged:?} after the write's end");
}
