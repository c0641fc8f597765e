//! A wall clock that stands still: a renewal that changes nothing renews nothing.

use crate::{
    locks::flawed::{Flaw, flawed},
    support::priority::{write_every, writers},
    support::{SOON, candidate, gated, lease_writes, pass, spec, until, within},
};
use kube_client::Client;
use kube_leader_gate::testing::{ApiServer, WriteRecord};
use std::time::Duration;
use tokio::{task::JoinSet, time::Instant};

/// The server answers such an update with the old version, and no watch reports it.
#[tokio::test(start_paused = true)]
async fn s6_renewal_without_change_does_not_extend_term() {
    let server = ApiServer::new();
    let election = flawed(&server, "a", Flaw::StandsStill);
    let mut writing = JoinSet::new();
    let client = election.wrap(Client::new(server.service().user("a"), "default"));
    write_every(&mut writing, client, 10);
    let began = Instant::now();
    let a = election.start();
    within(Duration::from_secs(1), "the candidate leads", a.candidate().elected()).await;
    let first = a.candidate().term();
    let b = candidate(&server, "b");
    write_every(&mut writing, gated(&server, &b, "b"), 10);
    let b = b.start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    pass(Duration::from_secs(8)).await;
    let renewed = lease_writes(&server, "a");
    assert!(renewed.len() >= 4, "it renews: {}", renewed.len());
    // Of its own: b may have written meanwhile that it stands by.
    let said = |write: &WriteRecord| {
        write.lease.as_ref().map(|lease| (lease.holder_identity.clone(), lease.renew_time.clone()))
    };
    assert!(renewed.windows(2).all(|pair| said(&pair[0]) == said(&pair[1])), "and changes nothing");
    assert_eq!(a.candidate().term(), first, "its deadline is still to come");
    until(Duration::from_secs(3), "the gate closes at the deadline", || a.candidate().term() != first).await;
    assert!(began.elapsed() <= Duration::from_millis(10_600), "{:?}", began.elapsed());
    // Another candidate may lead after that, but never two at once.
    pass(Duration::from_secs(40)).await;
    assert!(!writers(&server).is_empty() && spec(&server)["leaseTransitions"] != 0);
}
