//! How many write when a lease becomes free, and how soon a loser asks again.

use crate::support::{FIRST, SOON, candidate, free, leading, pass, until, within};
use kube_leader_gate::testing::{ApiServer, Fault};
use std::time::Duration;

/// The candidates know nothing of each other until one of them loses a race. From then on it waits for longer.
#[tokio::test(start_paused = true)]
async fn followers_spread_claims_after_first_race() {
    const FOLLOWERS: usize = 100;
    let server = ApiServer::new();
    let (mut leader, _) = leading(&server, "leader").await;
    // All of them try before one has won.
    let _slow = server.inject(Fault::delay_before(Duration::from_millis(5)).verb("update"));
    let mut followers: Vec<_> =
        (0..FOLLOWERS).map(|it| candidate(&server, &format!("follower-{it}")).start()).collect();
    until(FIRST, "all know the leader", || followers.iter().all(|it| it.candidate().holder().is_some()))
        .await;
    let mut refused = Vec::new();
    for _ in 0..6 {
        drop(server.take_write_log());
        leader.stop().await;
        let successor = || followers.iter().position(|it| it.candidate().is_leader());
        until(FIRST, "another one leads", || successor().is_some()).await;
        leader = followers.swap_remove(successor().unwrap());
        pass(FIRST).await;
        refused.push(server.write_log().iter().filter(|write| !write.took_effect()).count());
    }
    assert!(refused[0] > FOLLOWERS / 2 && refused[1..].iter().all(|it| *it < FOLLOWERS / 5), "{refused:?}");
}

/// The watch shows who has won. In a crowd, the reads of the losers would delay the winner.
#[tokio::test(start_paused = true)]
async fn loser_of_a_race_reads_at_once_only_without_a_watch() {
    for watches in [true, false] {
        let server = ApiServer::new();
        free(&server);
        let _refused = (!watches).then(|| server.inject(Fault::forbidden().verb("watch")));
        let slow = server.inject(Fault::delay_before(SOON).user("a").verb("update").times(1));
        let _race = server.inject(Fault::status(409).user("a").verb("update").times(1));
        let a = candidate(&server, "a").start();
        until(FIRST, "it tries", || slow.hits() == 1).await;
        let reads = server.reads("a", "get", "leases");
        pass(SOON * 2).await;
        assert_eq!(server.reads("a", "get", "leases") > reads, !watches, "it watches: {watches}");
        within(FIRST, "it tries again", a.candidate().elected()).await;
    }
}
