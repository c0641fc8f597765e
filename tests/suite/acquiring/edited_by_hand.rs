//! A user changes the lease by hand, while a holder may still write.

use crate::{
    support::priority::{leading_as, ranked},
    support::{LEASE, SOON, candidate, leading, pass, until, within, write},
};
use kube_leader_gate::testing::{ApiServer, Fault, WatchBreak};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// As `kubectl patch` does: the holder is empty, and all else stays.
fn free_by_hand(server: &ApiServer) {
    server.edit("user", LEASE, |lease| lease["spec"]["holderIdentity"] = "".into()).expect("the lease");
}

/// Another elector takes the lease for this time. It knows nothing of handovers.
fn take_for(server: &ApiServer, seconds: u64) {
    let take = |lease: &mut Value| {
        let spec = &mut lease["spec"];
        (spec["holderIdentity"], spec["leaseDurationSeconds"]) = ("third".into(), seconds.into());
        spec["leaseTransitions"] = (spec["leaseTransitions"].as_u64().unwrap_or_default() + 1).into();
        (spec["acquireTime"], spec["renewTime"]) =
            ("2026-01-01T00:00:09.000000Z".into(), "2026-01-01T00:00:09.000000Z".into());
    };
    server.edit("third", LEASE, take).expect("the lease");
}

/// The holder hears nothing, and its calls hang. A candidate has preempted it, and waits for the end of its time.
#[tokio::test(start_paused = true)]
async fn s6_preempted_silent_holder_outlives_the_lease() {
    for change in ["freed", "taken and freed", "taken for a short time"] {
        let server = ApiServer::new();
        let (low, _) = leading_as(&server, "low", "low").await;
        pass(SECOND * 3).await;
        let _silent = server.inject(Fault::hang_before().user("low"));
        server.break_watches(|user| user == "low", WatchBreak::End);
        let high = ranked(&server, "high", "high").start();
        let holds = || server.object(LEASE).expect("the lease")["spec"]["holderIdentity"] == "high";
        until(SECOND, "the candidate has preempted the holder", holds).await;
        if change.starts_with("taken") {
            take_for(&server, 2);
        }
        if change.ends_with("freed") {
            free_by_hand(&server);
        }
        until(SECOND * 14, "the candidate opens its gate, or the holder's time is over", || {
            assert!(
                !(low.candidate().can_write() && high.candidate().can_write()),
                "{change}: two gates are open"
            );
            !low.candidate().can_write()
        })
        .await;
        within(SECOND * 8, "the candidate leads", high.candidate().elected()).await;
    }
}

/// The lease has just been made, so its count is 0, as is that of a wiped one. The holder hears nothing, and its calls
/// hang.
#[tokio::test(start_paused = true)]
async fn s6_wiped_lease_of_the_first_holder_waits() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let _silent = server.inject(Fault::hang_before().user("a"));
    server.break_watches(|user| user == "a", WatchBreak::End);
    server.edit("user", LEASE, |lease| lease["spec"] = serde_json::json!({})).expect("the lease");
    until(SECOND * 14, "the holder's time is over", || {
        let both = a.candidate().can_write() && b.candidate().can_write();
        test_support::assert_safety!(!both, "two gates are open");
        !a.candidate().can_write()
    })
    .await;
    within(SECOND * 8, "b leads", b.candidate().elected()).await;
}

/// The holder is alive. It learns of the change, and tells the next holder that its writes have ended.
#[tokio::test(start_paused = true)]
async fn lease_freed_by_hand_has_a_leader_at_once() {
    for _ in 0..20 {
        let server = ApiServer::new();
        let (a, client) = leading(&server, "a").await;
        let b = candidate(&server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        write(&client).await.expect("it leads");
        let before = a.candidate().term();
        free_by_hand(&server);
        let began = Instant::now();
        until(SOON, "one leads again", || {
            let terms = [a.candidate().term(), b.candidate().term()];
            terms.iter().any(|term| term.is_some() && *term != before)
        })
        .await;
        assert!(began.elapsed() < SECOND / 10);
    }
}

/// A user has typed too many digits, the holder's process has ended, and another user deletes the lease.
#[tokio::test(start_paused = true)]
async fn long_wait_for_a_deleted_holder_is_trouble() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    drop(a);
    server
        .edit("user", LEASE, |lease| lease["spec"]["leaseDurationSeconds"] = 2_000_000_000.into())
        .expect("the lease");
    server.delete("user", LEASE).expect("the lease");
    until(SOON, "b is in trouble", || b.candidate().check_ready().is_err()).await;
    let trouble = b.candidate().trouble().expect("trouble");
    assert!(trouble.contains("\"a\"") && trouble.contains("restart"), "{trouble}");
    let day = SECOND * 24 * 60 * 60;
    within(day + SECOND * 3, "b leads after a day", b.candidate().elected()).await;
    assert_eq!(b.candidate().trouble(), None);
}
