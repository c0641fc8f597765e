//! Prioritised election: who preempts whom, and that nobody writes twice on the way.

use crate::support::{
    LEASE, SOON, build, builder, candidate, gated, leading, lease, lease_writes, pass, spec, steal, until, within,
    write,
};
use futures_util::FutureExt;
use kube_client::Client;
use kube_leader_gate::{
    Election, LeaseTiming,
    election::{Priority, Running, Stopped},
    leadership::Loss,
    testing::{ApiServer, Fault, Judge},
};
use serde_json::{Value, json};
use std::time::Duration;

const KEY: &str = "leader.istio.io/holder-key";

fn ranked(server: &ApiServer, identity: &str, key: &str) -> Election {
    let priority = Priority::ranked(key, ["high", "middle", "low"]).expect("a priority");
    build(server, identity, builder(identity).priority(priority)).expect("a valid election")
}

async fn leading_as(server: &ApiServer, identity: &str, key: &str) -> (Running, Client) {
    let election = ranked(server, identity, key);
    let client = gated(server, &election, identity);
    let running = election.start();
    within(SOON, "it leads", running.leader().elected()).await;
    (running, client)
}

fn annotations(server: &ApiServer) -> Value {
    server.object(LEASE).expect("the lease")["metadata"]["annotations"].take()
}

/// The successes among the writes of the two, none of which may overlap.
fn judged(server: &ApiServer, candidates: &[&str]) -> u64 {
    let verdict = Judge::new("default", "operator", candidates.iter().copied()).verdict(&server.write_log());
    assert!(verdict.strays.is_empty(), "{:?}", verdict.strays);
    verdict.admitted.values().sum()
}

/// Writes as fast as it is let, for as long as it is polled.
async fn hammer(client: Client) {
    loop {
        let _ = write(&client).await;
        pass(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_higher_candidate_preempts_a_live_holder_at_once_and_nobody_writes_twice() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    assert_eq!(annotations(&server), json!({ KEY: "low" }));
    let before = low.leader().term().unwrap();
    let election = ranked(&server, "b", "high");
    let high_client = gated(&server, &election, "b");
    let (first, second) = (tokio::spawn(hammer(low_client)), tokio::spawn(hammer(high_client)));
    let high = election.start();
    let after = within(SOON, "the higher one leads", high.leader().elected()).await;
    assert!(!low.leader().is_leader());
    assert_eq!(low.leader().state().lost, Some(Loss::Taken));
    assert_eq!(after.transitions(), before.transitions() + 1);
    assert_eq!(annotations(&server), json!({ KEY: "high" }), "nothing is left of the handover");
    assert_eq!(spec(&server)["leaseDurationSeconds"], 15);
    pass(Duration::from_secs(20)).await;
    assert!(high.leader().is_leader() && !low.leader().is_leader());
    assert_eq!(high.leader().term(), Some(after));
    first.abort();
    second.abort();
    assert!(judged(&server, &["a", "b"]) > 1000);
    // The key goes with a release, as Istio has it; anybody may lead then.
    assert_eq!(high.stop().await, Stopped::Released);
    within(SOON, "the lower one leads", low.leader().elected()).await;
    assert_eq!(annotations(&server), json!({ KEY: "low" }));
    low.stop().await;
    assert!(annotations(&server).get(KEY).is_none());
}
