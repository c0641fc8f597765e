//! The normal case: which candidate leads, and how leadership passes on.

use crate::support::{
    LEASE, SOON, candidate, gated, is_not_leader, leading, lease_writes, pass, until, within, write,
};
use kube_leader_gate::testing::{ApiServer, Fault};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn one_of_three_candidates_leads_and_hands_over() {
    let server = ApiServer::new();
    let (a, a_client) = leading(&server, "a").await;
    let followers = ["b", "c"].map(|identity| {
        let election = candidate(&server, identity);
        (gated(&server, &election, identity), election.start())
    });
    until(SOON, "the followers know a", || {
        followers.iter().all(|(_, running)| running.candidate().holder().as_deref() == Some("a"))
    })
    .await;
    for (client, running) in &followers {
        assert!(!running.candidate().is_leader());
        let refused = write(client).await;
        assert!(is_not_leader(&refused), "{refused:?}");
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("write attempt rejected as client is not leader"), "{message}");
        assert!(message.contains("create tokenreviews.authentication.k8s.io"), "{message}");
        assert!(message.contains("last known holder of the lease is \"a\""), "{message}");
    }
    write(&a_client).await.expect("the leader writes");
    pass(Duration::from_secs(60)).await;
    assert!(a.candidate().is_leader(), "a renews");
    a.stop().await;
    assert!(is_not_leader(&write(&a_client).await));
    until(SOON, "another one leads", || followers.iter().any(|(_, running)| running.candidate().is_leader()))
        .await;
    let leaders = followers.iter().filter(|(_, running)| running.candidate().is_leader()).count();
    assert_eq!(leaders, 1);
    assert_eq!(server.object(LEASE).unwrap()["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn steady_follower_only_watches() {
    let server = ApiServer::new();
    let (_a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    pass(SOON).await;
    let gets = server.reads("b", "get", "leases");
    pass(Duration::from_secs(240)).await;
    assert_eq!(server.reads("b", "get", "leases"), gets);
    assert!(lease_writes(&server, "b").is_empty());
    assert_eq!(server.reads("b", "watch", "leases"), 1);
}

#[tokio::test(start_paused = true)]
async fn follower_without_watch_permission_polls_and_takes_over() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let gets = server.reads("b", "get", "leases");
    pass(Duration::from_secs(60)).await;
    let polls = server.reads("b", "get", "leases") - gets;
    assert!((24..=31).contains(&polls), "{polls} polls in 60 s at 2-2.4 s");
    a.stop().await;
    within(Duration::from_millis(2500), "b leads by its next poll", b.candidate().elected()).await;
}

/// Polls are seconds apart. The takeover still happens at the expiry.
#[tokio::test(start_paused = true)]
async fn successor_of_crashed_leader_leads_at_expiry() {
    for watching in [true, false] {
        let server = ApiServer::new();
        let _no_watch = (!watching).then(|| server.inject(Fault::forbidden().verb("watch")));
        let (a, _) = leading(&server, "a").await;
        let b = candidate(&server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        let seen = tokio::time::Instant::now();
        drop(a);
        within(Duration::from_secs(16), "b leads", b.candidate().elected()).await;
        let late = seen.elapsed().saturating_sub(Duration::from_secs(15));
        assert!(late < Duration::from_millis(20), "watching: {watching}, {late:?} after the expiry");
    }
}
