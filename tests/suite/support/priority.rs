//! Candidates with priorities, and who wrote when.

use super::{FIRST, LEASE, build, builder, gated, pass, within, write};
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::{Priority, Running},
    testing::ApiServer,
};
use serde_json::Value;
use std::time::Duration;
use tokio::task::JoinSet;

pub const KEY: &str = "leader.istio.io/holder-key";

pub fn with(server: &ApiServer, identity: &str, priority: Priority) -> Election {
    build(server, identity, builder(identity).priority(priority)).expect("a valid election")
}

pub fn ranked(server: &ApiServer, identity: &str, key: &str) -> Election {
    with(server, identity, Priority::ranked(key, ["high", "middle", "low"]).expect("a priority"))
}

/// A candidate with this key that leads already.
pub async fn leading_as(server: &ApiServer, identity: &str, key: &str) -> (Running, Client) {
    let election = ranked(server, identity, key);
    let client = gated(server, &election, identity);
    let running = election.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

/// The question of a preferred candidate, or of a person.
pub const ASKED: &str = "kube-leader-gate/asked";

/// The annotations of the lease but that of each claim.
pub fn annotations(server: &ApiServer) -> Value {
    let mut all = server.object(LEASE).expect("the lease")["metadata"]["annotations"].take();
    if let Some(all) = all.as_object_mut() {
        all.retain(|name, _| {
            !["kube-leader-gate/claim", "kube-leader-gate/waits-for"].contains(&name.as_str())
        });
    }
    all
}

/// Tries to write each millisecond.
pub fn hammer(tasks: &mut JoinSet<()>, client: Client) {
    write_every(tasks, client, 1);
}

pub fn write_every(tasks: &mut JoinSet<()>, client: Client, millis: u64) {
    tasks.spawn(async move {
        loop {
            let _ = write(&client).await;
            pass(Duration::from_millis(millis)).await;
        }
    });
}

/// Checks in the server's log that no two writes of different candidates overlap. Returns the writers in order, once
/// for each turn: writers that alternate were both admitted.
pub fn writers(server: &ApiServer) -> Vec<String> {
    let mut log = server.write_log();
    log.retain(|write| write.resource != "leases" && write.took_effect());
    log.sort_by_key(|write| write.received);
    let mut writers: Vec<String> = Vec::new();
    for (place, write) in log.iter().enumerate() {
        if writers.last() == Some(&write.user) {
            continue;
        }
        let over = log[..place].iter().all(|it| it.user == write.user || it.completed < Some(write.received));
        test_support::assert_safety!(over, "two write at once: {write:?}");
        writers.push(write.user.clone());
    }
    writers
}
