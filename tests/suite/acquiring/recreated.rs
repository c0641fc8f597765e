//! A deleted lease: under a holder that does not see the deletion, and in front of a newcomer.

use crate::{
    support::priority::{hammer, writers},
    support::{
        LEASE, SOON, builder, candidate, gated, is_not_leader, leading, lease, pass, until, within, write,
    },
    work::many::replica::{Fate, Network, is_watch, over},
};
use kube_leader_gate::{
    leadership::Loss,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::Value;
use std::time::Duration;
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);

/// Deletes the lease and creates it again with all its fields. Returns the new uid.
fn recreate(server: &ApiServer) -> Value {
    let before = server.object(LEASE).unwrap();
    server.delete("outsider", LEASE).unwrap();
    server.put("outsider", LEASE, lease(&before["spec"])).unwrap();
    let after = server.object(LEASE).unwrap();
    assert_eq!(before["spec"], after["spec"]);
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    after["metadata"]["uid"].clone()
}

/// For example after a restored backup: the object is another one, so the term is over.
#[tokio::test(start_paused = true)]
async fn s8_recreated_lease_ends_the_term() {
    for watching in [false, true] {
        let server = ApiServer::new();
        let _blind = (!watching).then(|| server.inject(Fault::forbidden().verb("watch")));
        let (a, client) = leading(&server, "a").await;
        let first = a.candidate().term().unwrap();
        pass(SOON).await;
        server.break_watches(|_| true, WatchBreak::Cut);
        let uid = recreate(&server);
        assert!(a.candidate().is_leader(), "it has seen nothing");
        let bound = SECOND * 2 + SOON;
        until(bound, "the gate closes", || !a.candidate().is_leader()).await;
        assert_eq!(a.candidate().leadership().state().lost, Some(Loss::Deleted), "watching: {watching}");
        assert!(is_not_leader(&write(&client).await));
        // The new lease names this candidate, but no candidate knows who wrote it.
        let second = within(SECOND * 16, "the candidate leads again", a.candidate().elected()).await;
        assert_eq!(uid, second.lease_uid(), "watching: {watching}");
        assert_ne!(first.lease_uid(), second.lease_uid());
        write(&client).await.expect("the candidate leads");
    }
}

/// The holder's watch reports the deletion some time later. A newcomer finds no lease and must not be faster.
#[tokio::test(start_paused = true)]
async fn s8_newcomer_after_deletion_never_overlaps_holder() {
    for lag in [20, 100, 200, 5, 0] {
        for _ in 0..3 {
            let server = ApiServer::new();
            let lag = Duration::from_millis(lag);
            let news =
                Network::new(
                    &server,
                    "a",
                    move |request, _| {
                        if is_watch(request) { Fate::Late(lag) } else { Fate::Passes }
                    },
                );
            let election = builder("a").build_in(&over(news, false)).unwrap();
            let client = gated(&server, &election, "a");
            let a = election.start();
            let first = within(SECOND, "a leads", a.candidate().elected()).await;
            pass(SECOND).await;
            let mut writing = JoinSet::new();
            hammer(&mut writing, client);
            let newcomer = candidate(&server, "c");
            hammer(&mut writing, gated(&server, &newcomer, "c"));
            server.delete("outsider", LEASE).unwrap();
            let c = newcomer.start();
            let goes_on = || a.candidate().term().as_ref() == Some(&first);
            until(lag + SOON, "the term ends", || !goes_on()).await;
            pass(SECOND).await;
            assert_eq!(writers(&server), ["a"], "after {lag:?}");
            let second = a.candidate().term().expect("a leads on");
            assert_ne!(first.lease_uid(), second.lease_uid());
            assert!(!c.candidate().is_leader() && c.candidate().holder().as_deref() == Some("a"));
        }
    }
}

/// The price: one pause, where no lease exists.
#[tokio::test(start_paused = true)]
async fn first_candidate_reads_twice_before_creating_lease() {
    let server = ApiServer::new();
    let a = candidate(&server, "a").start();
    let began = tokio::time::Instant::now();
    within(SECOND, "the candidate leads", a.candidate().elected()).await;
    let after = began.elapsed();
    assert!(after >= SECOND / 4 && after < SECOND / 2 + SOON, "{after:?}");
    assert!(server.reads("a", "get", "leases") >= 2);
}
