//! Only the coordinator names a holder, and the gate opens after that candidate's own write.

use super::support::{coordinated, coordination, is_listed, leading, name};
use crate::support::{
    LEASE, SOON, build, builder, candidate, free, gated, is_not_leader, lease, lease_writes, pass, spec,
    until, within, write,
};
use kube_client::Client;
use kube_leader_gate::{
    Identity,
    election::{EarlyTakeover, ErrBuild, Priority},
    testing::{ApiServer, Fault},
};
use serde_json::json;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn free_lease_is_left_to_the_coordinator() {
    let server = ApiServer::new();
    free(&server);
    let a = coordinated(&server, "a");
    let client = gated(&server, &a, "a");
    let a = a.start();
    pass(10 * MINUTE).await;
    assert!(lease_writes(&server, "a").is_empty());
    assert!(is_not_leader(&write(&client).await));
    server.delete("outsider", LEASE).unwrap();
    pass(MINUTE).await;
    assert!(server.object(LEASE).is_none() && !a.candidate().is_leader());
}

/// Rule S1: the deadline counts from a write of this process, never from the coordinator's.
#[tokio::test(start_paused = true)]
async fn s1_gate_opens_after_the_named_candidates_own_write() {
    let server = ApiServer::new();
    let election = coordinated(&server, "a");
    let client = gated(&server, &election, "a");
    let a = election.start();
    is_listed(&server, "a").await;
    let refused = server.inject(Fault::status(500).verb("update").resource("leases"));
    name(&server, "a");
    until(SOON, "it has tried", || refused.hits() > 0).await;
    assert!(is_not_leader(&write(&client).await));
    drop(refused);
    let term = within(SOON * 10, "it leads", a.candidate().elected()).await;
    write(&client).await.unwrap();
    assert_eq!(term.transitions(), 1, "the count grows, although the coordinator left it");
    let spec = spec(&server);
    assert_eq!(
        (&spec["leaseDurationSeconds"], &spec["strategy"]),
        (&json!(15), &json!("OldestEmulationVersion"))
    );
}

/// The coordinator compares wall clocks. The former holder still counts as live here, and knows nothing.
#[tokio::test(start_paused = true)]
async fn s6_named_candidate_waits_for_the_former_holder() {
    let server = ApiServer::new();
    let former =
        lease(&json!({ "holderIdentity": "former", "leaseDurationSeconds": 15, "leaseTransitions": 3,
                                "acquireTime": "2026-01-02T03:04:05.000000Z" }));
    server.put("former", LEASE, former).unwrap();
    let begun = tokio::time::Instant::now();
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    pass(Duration::from_secs(4)).await;
    name(&server, "a");
    until(SOON, "it has the lease", || !lease_writes(&server, "a").is_empty()).await;
    assert!(!a.candidate().is_leader());
    within(MINUTE, "it leads", a.candidate().elected()).await;
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(15) && waited < Duration::from_secs(16), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn s8_deleted_lease_is_not_created_again() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    server.delete("outsider", LEASE).unwrap();
    until(SOON, "the gate closes", || !a.candidate().is_leader()).await;
    pass(MINUTE).await;
    assert!(server.object(LEASE).is_none());
    name(&server, "a");
    within(SOON, "it leads", a.candidate().elected()).await;
    write(&client).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn uncoordinated_candidate_takes_over_and_is_followed() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    a.stop().await;
    within(SOON, "it takes the free lease", b.candidate().elected()).await;
    let c = coordinated(&server, "c").start();
    is_listed(&server, "c").await;
    b.stop().await;
    pass(MINUTE).await;
    assert!(!c.candidate().is_leader());
    name(&server, "c");
    within(SOON, "it is named", c.candidate().elected()).await;
}

#[tokio::test]
async fn settings_that_contradict_a_coordinator_are_refused() {
    let server = ApiServer::new();
    let client = || Client::new(server.service().user("a"), "default");
    let priority = Priority::ranked("high", ["high"]).unwrap();
    let preferring = builder("a").priority(priority).coordinated(client(), coordination());
    let odd = builder("a").identity(Identity::new("host/a").unwrap()).coordinated(client(), coordination());
    let early = builder("a")
        .early_takeover(EarlyTakeover::of_pod(client(), "a", "uid"))
        .coordinated(client(), coordination());
    for (builder, what) in [(preferring, "priority"), (early, "early takeover"), (odd, "identity")] {
        let Err(ErrBuild::Coordination(error)) = build(&server, "a", builder) else { panic!("{what}") };
        assert_eq!(error.what(), what);
        assert!(
            error.to_string().starts_with(&format!("invalid {what} of a coordinated election")),
            "{error}"
        );
    }
}
