//! Elections that end without an order to stop: the gate closes, and observers learn of it.

use crate::locks::flawed::{Flaw, flawed};
use crate::support::{
    FIRST, SOON, candidate, gated, is_not_leader, leading, lease_writes, pass, spec, until, within, write,
};
use futures_util::StreamExt;
use kube_client::Client;
use kube_leader_gate::{
    Election,
    leadership::Loss,
    testing::{ApiServer, Fault},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A candidate whose election dies at its next renewal, once the flag is set.
fn fragile(server: &ApiServer) -> (Election, Arc<AtomicBool>) {
    let breaks = Arc::new(AtomicBool::new(false));
    (flawed(server, "a", Flaw::Panics(breaks.clone())), breaks)
}

async fn rejection(client: &Client) -> String {
    let result = write(client).await;
    assert!(is_not_leader(&result), "{result:?}");
    result.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn s10_dead_election_closes_gate_and_says_so() {
    let server = ApiServer::new();
    let (election, breaks) = fragile(&server);
    let client = election.wrap(Client::new(server.service().user("a"), "default"));
    let running = election.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    let leader = running.candidate().clone();
    let changes = leader.changes();
    leader.check(Duration::ZERO).expect("healthy");
    breaks.store(true, Ordering::SeqCst);
    within(Duration::from_secs(3), "the election ends", running.candidate().ended()).await.unwrap_err();
    assert!(!leader.is_leader() && !leader.can_write());
    let states = within(SOON, "the changes end", changes.collect::<Vec<_>>()).await;
    assert_eq!(states.last().and_then(|state| state.lost), Some(Loss::Abandoned));
    let ended = "the leader election has ended; restart the process to contend again";
    assert_eq!(leader.check(Duration::from_secs(3600)).unwrap_err().to_string(), ended);
    assert_eq!(leader.trouble().as_deref(), Some(ended));
    let rejection = rejection(&client).await;
    assert!(
        rejection.ends_with("the election of this process has stopped, and it will not lead again"),
        "{rejection}"
    );
    running.stop().await;
    assert_eq!(self::rejection(&client).await, rejection);
}

/// The gate closes at once: when the drop returns, before any task has run.
#[tokio::test(start_paused = true)]
async fn s10_dropping_run_closes_the_gate() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
    let mut run = Box::pin(election.run(std::future::pending::<()>()));
    tokio::select! {
        _ = &mut run => unreachable!("its workload never ends"),
        _ = within(FIRST, "the candidate leads", leader.elected()) => {}
    }
    assert!(leader.can_write());
    drop(run);
    assert!(!leader.can_write());
    assert!(is_not_leader(&write(&client).await));
    assert!(leader.check(Duration::ZERO).is_err());
    assert_eq!(spec(&server)["holderIdentity"], "a", "not released: it expires");
}

/// The caller of `run` learns that the election has died.
#[tokio::test(start_paused = true)]
async fn s10_dead_election_ends_the_workload() {
    let server = ApiServer::new();
    let (election, breaks) = fragile(&server);
    let leader = election.candidate();
    let owned = Arc::new(());
    let alive = Arc::downgrade(&owned);
    let workload = async move {
        leader.elected().await;
        breaks.store(true, Ordering::SeqCst);
        std::future::pending::<()>().await;
        drop(owned);
    };
    let ended = within(Duration::from_secs(3), "the run ends", election.run(workload)).await;
    assert!(ended.unwrap_err().to_string().starts_with("the leader election ended without an order to stop"));
    assert!(alive.upgrade().is_none(), "the workload is dropped");
}

/// The gate closes before anything else can happen, and the election's open calls never take effect.
#[tokio::test(start_paused = true)]
async fn s10_dropping_election_closes_gate_and_ends_calls() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let slow = server.inject(Fault::delay_before(Duration::from_secs(1)).verb("update").resource("leases"));
    until(Duration::from_secs(3), "a renewal is under way", || slow.hits() > 0).await;
    let (leader, written) = (a.candidate().clone(), lease_writes(&server, "a").len());
    assert!(leader.can_write());
    drop(a);
    assert!(!leader.can_write());
    pass(Duration::from_secs(60)).await;
    assert_eq!(lease_writes(&server, "a").len(), written);
}
