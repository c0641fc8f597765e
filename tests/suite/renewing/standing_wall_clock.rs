//! A wall clock that stands still: a renewal that changes nothing renews nothing.

use crate::{
    locks::flawed::{Flaw, flawed},
    support::priority::{write_every, writers},
    support::{candidate, gated, pass, until, within},
};
use kube_client::Client;
use kube_leader_gate::testing::ApiServer;
use std::time::Duration;
use tokio::task::JoinSet;

/// Each claim is stored with the same time, so it is not what was sent, and others may see no renewal.
#[tokio::test(start_paused = true)]
async fn s6_claim_that_is_stored_with_another_time_begins_no_term() {
    let server = ApiServer::new();
    let election = flawed(&server, "a", Flaw::StandsStill);
    let mut writing = JoinSet::new();
    let client = election.wrap(Client::new(server.service().user("a"), "default"));
    write_every(&mut writing, client, 10);
    let a = election.start();
    until(Duration::from_secs(1), "it is in trouble", || a.candidate().trouble().is_some()).await;
    let trouble = a.candidate().trouble().unwrap();
    assert!(trouble.contains("the acquire time") || trouble.contains("the renew time"), "{trouble}");
    let b = candidate(&server, "b");
    write_every(&mut writing, gated(&server, &b, "b"), 10);
    let b = b.start();
    within(Duration::from_secs(120), "b leads in the end", b.candidate().elected()).await;
    pass(Duration::from_secs(40)).await;
    assert_eq!(writers(&server), ["b"]);
    assert!(a.candidate().leadership().state().lost.is_none(), "it has never led");
}
