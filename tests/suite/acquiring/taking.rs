//! When a candidate takes the lease, what it writes, and which lease it replaces.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, candidate, leading, lease, lease_writes, pass, spec, until, within,
    write,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_leader_gate::{
    LeaseTiming,
    testing::{ApiServer, Fault, WriteRecord},
};
use serde_json::json;
use std::time::Duration;

/// client-go #448, kubernetes #120824: times in the lease are for people. They may be wrong.
#[tokio::test(start_paused = true)]
async fn s6_wall_clock_times_are_ignored() {
    for renew_time in ["1999-01-01T00:00:00.000000Z", "2199-01-01T00:00:00.000000Z"] {
        let server = ApiServer::new();
        let spec = json!({ "holderIdentity": "old", "leaseDurationSeconds": 30, "renewTime": renew_time });
        server.put("outsider", LEASE, lease(&spec)).unwrap();
        let a = candidate(&server, "a").start();
        let began = tokio::time::Instant::now();
        within(Duration::from_secs(31), "the candidate leads", a.candidate().elected()).await;
        // The *recorded* duration counts, not this candidate's 15 s, from when this candidate first saw it.
        let after = began.elapsed();
        assert!(after >= Duration::from_secs(30) && after < Duration::from_millis(30_050), "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s6_renewing_holder_keeps_the_lease() {
    let server = ApiServer::new();
    server.put("go", LEASE, lease(&json!({ "holderIdentity": "go", "leaseDurationSeconds": 15 }))).unwrap();
    let a = candidate(&server, "a").start();
    for beat in 0..20 {
        pass(Duration::from_secs(14)).await;
        server.edit("go", LEASE, |lease| lease["spec"]["renewTime"] = format!("beat {beat}").into()).unwrap();
        assert!(!a.candidate().is_leader());
    }
    // A label change is no renewal: an outsider that changes labels all the time does not keep a dead holder alive.
    let began = tokio::time::Instant::now();
    let touching = async {
        loop {
            pass(Duration::from_millis(900)).await; // never at the lease's end
            let now = began.elapsed().as_secs().to_string();
            server.edit("outsider", LEASE, |lease| lease["metadata"]["labels"]["x"] = now.into()).unwrap();
        }
    };
    tokio::select! {
        () = touching => {}
        _ = within(Duration::from_millis(15_100), "the candidate leads", a.candidate().elected()) => {}
    }
}

/// All candidates try to take an expired lease at the same instant. The swap admits one of them.
#[tokio::test(start_paused = true)]
async fn s6_only_one_of_many_candidates_acquires() {
    let server = ApiServer::new();
    server
        .put("outsider", LEASE, lease(&json!({ "holderIdentity": "dead", "leaseDurationSeconds": 15 })))
        .unwrap();
    // All reads answer before any write is seen.
    let _slow =
        server.inject(Fault::delay_before(Duration::from_millis(50)).verb("update").resource("leases"));
    let names: Vec<String> = (0..8).map(|number| format!("candidate-{number}")).collect();
    let running: Vec<_> = names.iter().map(|name| candidate(&server, name).start()).collect();
    let leaders = || running.iter().filter(|candidate| candidate.candidate().is_leader()).count();
    until(Duration::from_secs(16), "one candidate leads", || leaders() > 0).await;
    for _ in 0..1000 {
        pass(Duration::from_millis(1)).await;
        assert_eq!(leaders(), 1);
    }
    let won = |name: &&String| {
        let holds = |write: &WriteRecord| write.lease.as_ref().is_some_and(|it| it.holder_identity == **name);
        lease_writes(&server, name).iter().any(holds)
    };
    assert_eq!(names.iter().filter(won).count(), 1);
}

/// An update never goes out without the version that was read.
#[tokio::test(start_paused = true)]
async fn s6_swap_fails_after_concurrent_write() {
    let server = ApiServer::new();
    server.put("outsider", LEASE, lease(&json!({ "holderIdentity": "" }))).unwrap();
    let slow =
        server.inject(Fault::delay_before(Duration::from_secs(1)).verb("update").resource("leases").times(1));
    let a = candidate(&server, "a").start();
    until(SOON, "its swap is under way", || slow.hits() == 1).await;
    server.edit("b", LEASE, |lease| lease["spec"]["holderIdentity"] = "b".into()).unwrap();
    pass(Duration::from_secs(5)).await;
    assert!(!a.candidate().is_leader());
    assert_eq!(spec(&server)["holderIdentity"], "b");
}

/// Twenty terms, since there were electors that led only once, or died silently (linkerd2 #15506, kubert #134).
#[tokio::test(start_paused = true)]
async fn s11_terms_of_one_process_never_overlap() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let mut terms = vec![a.candidate().term().unwrap()];
    for round in 0..20 {
        let _hang = server.inject(Fault::hang_before().resource("tokenreviews").times(1));
        let writer = client.clone();
        let of_this_term = tokio::spawn(async move { write(&writer).await });
        until(SOON, "a write of this term is under way", || {
            a.candidate().leadership().writes_under_way() == 1
        })
        .await;
        server.delete("outsider", LEASE).unwrap();
        until(SOON, "the term is over", || !a.candidate().is_leader()).await;
        let next = within(Duration::from_secs(3), "the next term", a.candidate().elected()).await;
        assert!(of_this_term.is_finished(), "nothing of the old term goes on in the new one");
        assert!(!terms.contains(&next));
        terms.push(next);
        write(&client).await.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    a.candidate().check(Duration::ZERO).expect("healthy");
}

/// client-go #1331, kubernetes #131632: all other fields of the object stay.
#[tokio::test(start_paused = true)]
async fn s12_foreign_fields_survive_every_update() {
    let server = ApiServer::new();
    let mut before = lease(&json!({
        "holderIdentity": "", "strategy": "OldestEmulationVersion", "preferredHolder": "c",
        "aFieldOfTheFuture": { "deep": [1, 2, 3] }
    }));
    before["metadata"]["labels"] = json!({ "team": "a" });
    before["metadata"]["annotations"] = json!({ "team": "a" });
    before["metadata"]["finalizers"] = json!(["example.com/keep"]);
    before["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1-2-3" }]);
    server.put("outsider", LEASE, before.clone()).unwrap();
    let (a, _) = leading(&server, "a").await;
    pass(Duration::from_secs(10)).await;
    a.stop().await;
    let mut after = server.object(LEASE).unwrap();
    for own in ["kube-leader-gate/claim", "kube-leader-gate/waits-for"] {
        after["metadata"]["annotations"].as_object_mut().unwrap().remove(own).expect("its own");
    }
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        assert_eq!(after["metadata"][field], before["metadata"][field], "{field}");
    }
    for field in ["strategy", "preferredHolder", "aFieldOfTheFuture"] {
        assert_eq!(after["spec"][field], before["spec"][field], "{field}");
    }
    assert_eq!(after["spec"]["leaseTransitions"], 1);
}

/// The labels and the owner of the builder are for a Lease that this process creates, and for no other.
#[tokio::test(start_paused = true)]
async fn created_lease_has_its_labels_and_its_owner() {
    let owner = OwnerReference {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        name: "operator".into(),
        uid: "1-2-3".into(),
        ..OwnerReference::default()
    };
    let builder = || {
        builder("a").lease_labels([("team", "a")]).lease_labels([("part", "b")]).lease_owner(owner.clone())
    };
    let marked = (json!({ "team": "a", "part": "b" }), json!([owner]));
    let marks = |server: &ApiServer| {
        let metadata = server.object(LEASE).unwrap()["metadata"].clone();
        (metadata["labels"].clone(), metadata["ownerReferences"].clone())
    };
    let server = ApiServer::new();
    let a = build(&server, "a", builder()).unwrap().start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    assert_eq!(marks(&server), marked);
    server.edit("outsider", LEASE, |lease| lease["metadata"]["labels"]["team"] = "b".into()).unwrap();
    pass(Duration::from_secs(10)).await;
    assert_eq!(marks(&server).0["team"], "b", "a renewal leaves the labels alone");
    server.delete("outsider", LEASE).unwrap();
    until(FIRST * 2, "the lease is created again", || server.object(LEASE).is_some()).await;
    assert_eq!(marks(&server), marked);

    let server = ApiServer::new();
    server.put("outsider", LEASE, lease(&json!({ "holderIdentity": "" }))).unwrap();
    let before = marks(&server);
    let a = build(&server, "a", builder()).unwrap().start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    assert_eq!(marks(&server), before, "the lease existed already");
}

#[tokio::test(start_paused = true)]
async fn lease_contains_the_default_timing() {
    let server = ApiServer::new();
    let timing = LeaseTiming::default();
    let a = build(&server, "a", builder("a").timing(timing)).unwrap().start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let spec = spec(&server);
    assert_eq!(spec["leaseDurationSeconds"], 137);
    assert_eq!(spec["leaseTransitions"], 0);
    let text = spec["renewTime"].as_str().unwrap();
    assert_eq!(text.len(), "2026-01-02T03:04:05.678901Z".len(), "{text}");
    assert_eq!(spec["acquireTime"], spec["renewTime"]);
}
