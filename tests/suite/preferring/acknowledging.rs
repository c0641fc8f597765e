//! When a preempted holder acknowledges: at once if its gate never opened, not while one of its own writes may still
//! take effect, and never for another holder.

use crate::{
    support::priority::{KEY, hammer, leading_as, ranked, writers},
    support::{LEASE, SKEW, SOON, begin_write, gated, lease, lease_writes, pass, spec, until, within, write},
};
use kube_leader_gate::{
    Candidate,
    testing::{ApiServer, Fault},
};
use serde_json::json;
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

/// The write ended without an answer before the preemption: its caller dropped it, or its connection broke. Until the
/// holder acknowledges, the holder in the lease does not change, and the old holder writes nothing.
#[tokio::test(start_paused = true)]
async fn s4_preempted_holder_waits_before_acknowledging() {
    for (fault, hangs) in
        [(Fault::hang_before(), true), (Fault::drop_before(), false), (Fault::drop_after(), false)]
    {
        let what = format!("{fault:?}");
        let server = ApiServer::new();
        let (low, low_client) = leading_as(&server, "a", "low").await;
        let fault = server.inject(fault.user("a").resource("tokenreviews"));
        if hangs {
            let writing = begin_write(low.candidate(), &low_client).await;
            writing.abort();
            assert!(writing.await.unwrap_err().is_cancelled());
        } else {
            write(&low_client).await.expect_err("its connection breaks");
        }
        drop(fault);
        let end = Instant::now();
        let election = ranked(&server, "b", "high");
        let mut both = JoinSet::new();
        hammer(&mut both, low_client);
        hammer(&mut both, gated(&server, &election, "b"));
        pass(SOON).await;
        let high = election.start();
        let after = led_after(high.candidate(), end).await;
        assert!(is_skew(after), "{what}: b leads {after:?} after the write's end");
        pass(SOON).await;
        assert_eq!(writers(&server), ["a", "b"], "{what}");
        let acknowledged = lease_writes(&server, "a").pop().unwrap().received.at - end;
        assert!(is_skew(acknowledged), "{what}: acknowledged {acknowledged:?} after the write's end");
    }
}

/// The answer to its own claim comes late, or never, and meanwhile another candidate takes the lease. No write has to
/// be waited for.
#[tokio::test(start_paused = true)]
async fn holder_with_unopened_gate_acknowledges_at_once() {
    let late = || Fault::delay_after(Duration::from_millis(50));
    let ways = [
        ("create", late(), SOON),
        ("update", late(), SOON),
        // Until its call times out and the pause after that is over.
        ("create", Fault::hang_after(), Duration::from_millis(2200)),
        ("update", Fault::hang_after(), Duration::from_millis(2200)),
    ];
    for (verb, fault, bound) in ways {
        let server = ApiServer::new();
        if verb == "update" {
            server.put("outsider", LEASE, lease(&json!({ "holderIdentity": "" }))).unwrap();
        }
        let what = format!("{verb}, {fault:?}");
        let _late = server.inject(fault.user("a").verb(verb).resource("leases").times(1));
        let (low, high) = (ranked(&server, "a", "low"), ranked(&server, "b", "high"));
        let mut writing = JoinSet::new();
        hammer(&mut writing, gated(&server, &low, "a"));
        hammer(&mut writing, gated(&server, &high, "b"));
        let low = low.start();
        until(SECOND, "a's claim lands", || {
            server.object(LEASE).is_some_and(|lease| lease["spec"]["holderIdentity"] == "a")
        })
        .await;
        assert!(!low.candidate().is_leader(), "it has not heard of it");
        let (began, high) = (Instant::now(), high.start());
        within(Duration::from_secs(16), "the higher one leads", high.candidate().elected()).await;
        assert!(began.elapsed() < bound, "{what}: b leads after {:?}", began.elapsed());
        assert!(
            !low.candidate().is_leader() && low.candidate().leadership().state().lost.is_none(),
            "the candidate never led"
        );
        pass(SOON).await;
        assert_eq!(writers(&server), ["b"], "{what}");
    }
}

/// A restored backup names another holder, with a count of transitions that was this candidate's.
#[tokio::test(start_paused = true)]
async fn s6_candidate_never_acknowledges_for_another_holder() {
    let server = ApiServer::new();
    let (a, _) = leading_as(&server, "a", "low").await;
    assert_eq!(a.candidate().term().unwrap().transitions(), 0);
    let b = ranked(&server, "b", "high").start();
    within(SOON, "b leads", b.candidate().elected()).await;
    drop(b);
    let played_in = |lease: &mut serde_json::Value| {
        lease["spec"] = json!({ "holderIdentity": "c", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                                "acquireTime": "2026-01-02T03:04:05.000000Z",
                                "renewTime": "2026-01-02T03:04:05.000000Z" });
        lease["metadata"]["annotations"] = json!({ KEY: "low" });
    };
    server.edit("c", LEASE, played_in).unwrap();
    until(SOON, "a knows c", || a.candidate().holder().as_deref() == Some("c")).await;
    let written = lease_writes(&server, "a").len();
    let (began, d) = (Instant::now(), ranked(&server, "d", "high").start());
    until(SOON, "the lease is taken", || spec(&server)["holderIdentity"] == "d").await;
    pass(Duration::from_secs(13)).await;
    assert_eq!(lease_writes(&server, "a").len(), written, "a has nothing to say");
    within(Duration::from_secs(3), "d leads", d.candidate().elected()).await;
    assert!(began.elapsed() > Duration::from_secs(14), "c may write: d leads after {:?}", began.elapsed());
}
