//! A user changes the lease by hand, while a holder may still write.

use crate::support::{LEASE, SOON, candidate, leading, lease, until, within, write};
use kube_leader_gate::testing::{ApiServer, Fault, WatchBreak};
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// As `kubectl patch` does: the holder is empty, and all else stays.
fn free_by_hand(server: &ApiServer) {
    server.edit("user", LEASE, |lease| lease["spec"]["holderIdentity"] = "".into()).expect("the lease");
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
        until(2 * SOON, "one leads again", || {
            let terms = [a.candidate().term(), b.candidate().term()];
            terms.iter().any(|term| term.is_some() && *term != before)
        })
        .await;
        assert!(began.elapsed() < SECOND / 5);
    }
}

/// A user has typed too many digits, the holder's process has ended, and another user deletes the lease.
#[tokio::test(start_paused = true)]
async fn long_wait_for_a_deleted_holder_is_trouble() {
    let server = ApiServer::new();
    let time = "2026-01-02T03:04:05.000000Z";
    let held = serde_json::json!({ "holderIdentity": "a", "leaseDurationSeconds": 2_000_000_000, "leaseTransitions": 3,
                                   "acquireTime": time, "renewTime": time });
    server.put("a", LEASE, lease(&held)).expect("a valid lease");
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    server.delete("user", LEASE).expect("the lease");
    until(SOON, "b is in trouble", || b.candidate().trouble().is_some_and(|it| it.contains("\"a\""))).await;
    let trouble = b.candidate().trouble().expect("trouble");
    assert!(trouble.contains("delete the lease and restart"), "{trouble}");
    let day = SECOND * 24 * 60 * 60;
    within(day + SECOND * 3, "b leads after a day", b.candidate().elected()).await;
    assert_eq!(b.candidate().trouble(), None);
}
