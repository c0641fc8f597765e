//! The election, in paused time.

use crate::support::{LEASE, candidate, until, within};
use kube_leader_gate::testing::ApiServer;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn one_of_three_leads_and_hands_over() {
    let server = ApiServer::new();
    let a = candidate(&server, "a").start();
    within(SOON, "a leads", a.leader().elected()).await;
    let b = candidate(&server, "b").start();
    let c = candidate(&server, "c").start();
    until(SOON, "b and c know a", || {
        [&b, &c].iter().all(|follower| follower.leader().holder().as_deref() == Some("a"))
    })
    .await;
    assert!(!b.leader().is_leader() && !c.leader().is_leader());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(a.leader().is_leader(), "a renews");
    a.stop().await;
    until(SOON, "b or c leads", || b.leader().is_leader() || c.leader().is_leader()).await;
    assert!(!(b.leader().is_leader() && c.leader().is_leader()));
    assert_eq!(server.object(LEASE).unwrap()["spec"]["leaseTransitions"], 1);
}
