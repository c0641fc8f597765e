//! Only the coordinator names a holder, and the gate opens after that candidate's own write.

use crate::support::{
    LEASE, SOON, build, builder, candidate, coordinated, coordination, free, gated, is_listed, is_not_leader,
    leading, lease, lease_writes, name, pass, spec, until, within, write,
};
use kube_leader_gate::{
    Identity,
    election::{ErrBuild, LeaseEnd, Priority},
    testing::{ApiServer, Fault},
};
use kube_leader_gate_coordination::{Coordinated, ErrInvalidCoordination};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
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

/// A lease that another program holds, as client-go writes it.
fn held(holder: &str, renewal: u64) -> Value {
    json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": format!("2026-01-02T03:04:05.{renewal:06}Z"),
            "renewTime": format!("2026-01-02T03:04:05.{renewal:06}Z") })
}

fn hold(server: &ApiServer, holder: &str) {
    server.put(holder, LEASE, lease(&held(holder, 0))).unwrap();
}

/// The holder releases the lease after this renewal, as client-go does.
fn release(server: &ApiServer, holder: &str, renewal: u64) {
    let released = format!("2026-01-02T03:04:05.{:06}Z", renewal + 1);
    let releasing = |lease: &mut Value| {
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
        lease["spec"]["acquireTime"] = released.as_str().into();
        lease["spec"]["renewTime"] = released.as_str().into();
    };
    server.edit(holder, LEASE, releasing).unwrap();
}

/// The coordinator compares wall clocks. The former holder still counts as live here, and knows nothing.
#[tokio::test(start_paused = true)]
async fn s6_named_candidate_waits_for_the_former_holder() {
    let server = ApiServer::new();
    hold(&server, "former");
    let begun = Instant::now();
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    pass(4 * SECOND).await;
    name(&server, "a");
    pass(5 * SECOND).await;
    assert_eq!(a.candidate().holder().as_deref(), Some("former"));
    name(&server, "a");
    pass(5 * SECOND).await;
    assert!(lease_writes(&server, "a").is_empty());
    within(MINUTE, "it leads", a.candidate().elected()).await;
    let waited = begun.elapsed();
    assert!(waited >= 15 * SECOND && waited < 16 * SECOND, "{waited:?}");
}

/// Without a watch it reads the lease every two seconds.
#[tokio::test(start_paused = true)]
async fn s6_polling_candidate_waits_for_the_former_holder() {
    let server = ApiServer::new();
    hold(&server, "former");
    let begun = Instant::now();
    let _watch = server.inject(Fault::forbidden().user("a").verb("watch").resource("leases"));
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    name(&server, "a");
    within(MINUTE, "it leads", a.candidate().elected()).await;
    let waited = begun.elapsed();
    assert!(waited >= 15 * SECOND && waited < 18 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn s6_candidate_named_before_its_first_read_waits() {
    let server = ApiServer::new();
    name(&server, "a");
    let begun = Instant::now();
    let a = coordinated(&server, "a").start();
    pass(14 * SECOND).await;
    assert!(lease_writes(&server, "a").is_empty());
    within(MINUTE, "it leads", a.candidate().elected()).await;
    assert!(begun.elapsed() >= 15 * SECOND && begun.elapsed() < 16 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn s6_named_candidate_waits_for_the_holder_of_a_deleted_lease() {
    let server = ApiServer::new();
    hold(&server, "former");
    let begun = Instant::now();
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    pass(4 * SECOND).await;
    server.delete("outsider", LEASE).unwrap();
    pass(SECOND).await;
    name(&server, "a");
    within(MINUTE, "it leads", a.candidate().elected()).await;
    // Its last renewal may not have been shown, so its time counts from the deletion.
    assert!(begun.elapsed() >= 19 * SECOND && begun.elapsed() < 20 * SECOND, "{:?}", begun.elapsed());
}

/// Another candidate is named in between, and never acquires the lease.
#[tokio::test(start_paused = true)]
async fn s6_candidate_named_after_another_waits_for_the_first() {
    let server = ApiServer::new();
    hold(&server, "former");
    let begun = Instant::now();
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    pass(SECOND).await;
    name(&server, "third");
    pass(6 * SECOND).await;
    name(&server, "a");
    within(MINUTE, "it leads", a.candidate().elected()).await;
    assert!(begun.elapsed() >= 15 * SECOND && begun.elapsed() < 16 * SECOND);
}

/// What the election is shown of a vacant lease makes no former writer.
#[tokio::test(start_paused = true)]
async fn named_candidate_waits_for_none_that_has_released() {
    for (vacant, watched) in [(0, true), (1, true), (60, true), (0, false), (60, false)] {
        let server = ApiServer::new();
        let refused = Fault::forbidden().user("a").verb("watch").resource("leases");
        let _refused = (!watched).then(|| server.inject(refused));
        hold(&server, "former");
        let a = coordinated(&server, "a").start();
        is_listed(&server, "a").await;
        pass(SECOND).await;
        // Another one acquires the vacant lease too.
        for (renewal, holder) in [(0, "former"), (100, "third")] {
            release(&server, holder, renewal);
            if !watched {
                pass(3 * SECOND).await;
            }
            pass(vacant * SECOND).await;
            server.edit("third", LEASE, |lease| lease["spec"] = held("third", renewal + 100)).unwrap();
            pass(if watched { SOON } else { 3 * SECOND }).await;
        }
        release(&server, "third", 200);
        pass(if watched { vacant * SECOND } else { (vacant + 3) * SECOND }).await;
        name(&server, "a");
        let bound = if watched { SOON } else { 3 * SECOND };
        within(bound, &format!("it leads, {vacant}, {watched}"), a.candidate().elected()).await;
        assert!(spec(&server)["leaseTransitions"] == 4);
    }
}

/// It crashed, and its time is over by both clocks.
#[tokio::test(start_paused = true)]
async fn named_candidate_waits_for_none_whose_time_is_over() {
    let server = ApiServer::new();
    hold(&server, "former");
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    pass(20 * SECOND).await;
    assert!(lease_writes(&server, "a").is_empty());
    name(&server, "a");
    within(SOON, "it leads", a.candidate().elected()).await;
}

/// Rule S12: what the layer shows is never written.
#[tokio::test(start_paused = true)]
async fn s12_foreign_fields_survive() {
    let server = ApiServer::new();
    free(&server);
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    server
        .edit("outsider", LEASE, |lease| {
            lease["metadata"]["annotations"] =
                json!({ "team": "x", "leader.istio.io/holder-key": "of the last" });
            lease["metadata"]["labels"] = json!({ "app": "y" });
        })
        .unwrap();
    name(&server, "a");
    within(SOON, "it leads", a.candidate().elected()).await;
    let lease = server.object(LEASE).unwrap();
    let mut annotations = lease["metadata"]["annotations"].clone();
    annotations.as_object_mut().unwrap().remove("kube-leader-gate/claim").expect("its own claim");
    assert_eq!(annotations, json!({ "team": "x", "kube-leader-gate/waits-for": "{}" }));
    assert_eq!(lease["metadata"]["labels"], json!({ "app": "y" }));
    a.stop().await;
    let lease = server.object(LEASE).unwrap();
    assert_eq!(
        (&lease["metadata"]["annotations"]["team"], &lease["spec"]["holderIdentity"]),
        (&json!("x"), &json!(""))
    );
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
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

/// A follower writes nothing into the lease of another one either.
#[tokio::test(start_paused = true)]
async fn follower_asks_for_no_place_and_stops_at_once() {
    let server = ApiServer::new();
    let (_a, _) = leading(&server, "a").await;
    let b = coordinated(&server, "b").start();
    is_listed(&server, "b").await;
    pass(MINUTE).await;
    assert!(lease_writes(&server, "b").is_empty());
    assert_eq!(b.stop().await, LeaseEnd::Released);
    let c = coordinated(&server, "c").start();
    server.delete("outsider", LEASE).unwrap();
    pass(MINUTE).await;
    assert_eq!(c.stop().await, LeaseEnd::Released);
}

#[tokio::test]
async fn identity_that_names_no_object_is_refused() {
    let server = ApiServer::new();
    let odd = builder("a").identity(Identity::new("host/a").unwrap()).coordinated(coordination(&server, "a"));
    let Err(ErrBuild::Lock(error)) = build(&server, "a", odd) else { panic!("it was built") };
    let error = error.downcast_ref::<ErrInvalidCoordination>().expect("its own error");
    assert_eq!(error.what(), "identity");
    assert!(error.to_string().starts_with("invalid identity of a coordinated election"), "{error}");
}

#[tokio::test]
async fn priority_is_refused() {
    let server = ApiServer::new();
    let priority = Priority::ranked("high", ["high", ""]).unwrap();
    for builder in [
        builder("a").priority(priority.clone()).coordinated(coordination(&server, "a")),
        builder("a").coordinated(coordination(&server, "a")).priority(priority),
    ] {
        let Err(ErrBuild::Lock(error)) = build(&server, "a", builder) else { panic!("it was built") };
        let error = error.downcast_ref::<ErrInvalidCoordination>().expect("its own error");
        assert_eq!((error.what(), error.given()), ("priority", "high"));
    }
}
