//! Kubernetes Events about gains and losses. The election never waits for them.

use crate::support::{
    FIRST, SOON, build, builder, gated, lease_writes, pass, release, steal, until, within, write,
};
use http::Request;
use kube_client::{
    Client,
    client::{AuthError, Body},
};
use kube_leader_gate::{
    LeaseTiming,
    election::{LeaseEnd, Running},
    testing::{ApiServer, Fault},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tower::{BoxError, ServiceExt, service_fn};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

fn reporting(server: &ApiServer, identity: &str) -> Running {
    let client = Client::new(server.service().user(identity), "default");
    build(server, identity, builder(identity).events(client)).expect("a valid election").start()
}

async fn leads(running: &Running) {
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
}

/// The notes, oldest first. A note that was repeated ends with its count.
fn notes(server: &ApiServer) -> Vec<String> {
    let mut events = server.objects(EVENTS);
    events.sort_by_key(|event| event["metadata"]["name"].to_string());
    let note = |event: &Value| {
        let note = event["note"].as_str().unwrap();
        event["series"]["count"]
            .as_u64()
            .map_or_else(|| note.to_owned(), |count| format!("{note}, {count} times"))
    };
    events.iter().map(note).collect()
}

async fn told(server: &ApiServer, bound: Duration, expected: &[&str]) {
    within(bound, "the event is written", async {
        while notes(server) != expected {
            pass(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Takes the lease from its holder and releases it.
fn rob(server: &ApiServer) {
    steal(server);
    release(server);
}

#[tokio::test(start_paused = true)]
async fn gain_and_loss_events_use_client_go_text() {
    let server = ApiServer::new();
    let a = reporting(&server, "a");
    leads(&a).await;
    let uid = a.candidate().term().unwrap().lease_uid().to_owned();
    told(&server, SOON, &["a became leader"]).await;
    let mut event = server.objects(EVENTS).remove(0);
    let metadata = event["metadata"].take();
    assert_eq!(metadata["namespace"], "default");
    assert!(metadata["name"].as_str().unwrap().starts_with("operator."), "{metadata}");
    assert_eq!(event["eventTime"].take().as_str().unwrap().len(), "2026-01-01T00:00:00.000000Z".len());
    let regarding = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": "default",
                            "name": "operator", "uid": uid });
    let expected = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": null, "eventTime": null, "type": "Normal",
        "reason": "LeaderElection", "action": "BecameLeader", "note": "a became leader", "regarding": regarding,
        "reportingController": "operator", "reportingInstance": "a",
    });
    assert_eq!(event, expected);

    steal(&server);
    told(&server, SOON, &["a became leader", "a stopped leading"]).await;
    pass(Duration::from_secs(17)).await;
    assert!(a.candidate().is_leader(), "the outsider does not renew");
    a.stop().await;
    // The event of the release is written too, before the stop ends.
    assert_eq!(notes(&server), ["a became leader, 2 times", "a stopped leading, 2 times"]);
}

/// As a Role without `patch` refuses it.
#[tokio::test(start_paused = true)]
async fn refused_repetition_costs_only_itself() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::forbidden().verb("patch").resource("events"));
    let a = reporting(&server, "a");
    leads(&a).await;
    rob(&server);
    until(SOON, "the candidate loses the lease", || !a.candidate().is_leader()).await;
    leads(&a).await;
    told(&server, SOON, &["a became leader", "a stopped leading"]).await;
    until(SOON, "the repetition is refused", || refused.hits() > 0).await;
    let renewed = lease_writes(&server, "a").len();
    pass(Duration::from_secs(60)).await;
    assert!(lease_writes(&server, "a").len() >= renewed + 29, "each 2 s");
    assert_eq!(refused.hits(), 1, "it is not tried again");
    assert_eq!(within(SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released);
    assert_eq!(notes(&server), ["a became leader", "a stopped leading"]);
}

#[tokio::test(start_paused = true)]
async fn follower_writes_no_events() {
    let server = ApiServer::new();
    let a = reporting(&server, "a");
    leads(&a).await;
    let b = reporting(&server, "b");
    pass(Duration::from_secs(30)).await;
    b.stop().await;
    assert_eq!(notes(&server), ["a became leader"]);
}

#[tokio::test(start_paused = true)]
async fn longest_names_fit_into_events() {
    let server = ApiServer::new();
    let lease = format!("{}.b", "a".repeat(234));
    let identity = kube_leader_gate::Identity::new("\u{e9}".repeat(126)).unwrap();
    let builder = kube_leader_gate::Election::builder("default", &lease)
        .identity(identity)
        .clock(std::sync::Arc::new(kube_leader_gate::testing::TokioClock::new()))
        .events(Client::new(server.service().user("a"), "default"));
    let a = build(&server, "a", builder).unwrap().start();
    leads(&a).await;
    a.stop().await;
    assert_eq!(notes(&server).len(), 2);
}

/// A server that hangs on events, refuses them, or answers with garbage.
#[tokio::test(start_paused = true)]
async fn failing_events_do_not_delay_election() {
    for fault in [Fault::hang_before(), Fault::hang_after(), Fault::forbidden(), Fault::status(503)] {
        let server = ApiServer::new();
        let fault = server.inject(fault.resource("events"));
        let client = Client::new(server.service().user("a"), "default");
        let election = build(&server, "a", builder("a").events(client)).unwrap();
        let work = gated(&server, &election, "a");
        let a = election.start();
        leads(&a).await;
        until(SOON, "an event is tried", || fault.hits() > 0).await;
        let renewed = lease_writes(&server, "a").len();
        pass(Duration::from_secs(60)).await;
        assert!(lease_writes(&server, "a").len() >= renewed + 29, "each 2 s");
        write(&work).await.unwrap();
        let call_timeout = LeaseTiming::fast().call_timeout();
        assert_eq!(within(call_timeout + SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released);
    }
}

/// The gate closes and the stop ends at the same moment: the deadline cut a write off, and the lease had no time left
/// for it.
#[tokio::test(start_paused = true)]
async fn stop_that_leaves_lease_to_expire_writes_event() {
    let server = ApiServer::new();
    let client = Client::new(server.service().user("a"), "default");
    let election = build(&server, "a", builder("a").events(client)).unwrap();
    let work = gated(&server, &election, "a");
    let a = election.start();
    leads(&a).await;
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let cut_off = tokio::spawn(async move { write(&work).await });
    let _refused = server.inject(Fault::status(500).verb("update").resource("leases"));
    until(SOON, "a write is under way", || hang.hits() > 0).await;
    assert_eq!(a.stop().await, LeaseEnd::LeftToExpire);
    cut_off.await.unwrap().unwrap_err();
    assert_eq!(notes(&server), ["a became leader", "a stopped leading"]);
}

#[tokio::test(start_paused = true)]
async fn event_is_written_once_after_an_outage() {
    for outage in [Fault::status(503).times(3), Fault::drop_before().times(1), Fault::hang_before().times(1)]
    {
        let server = ApiServer::new();
        let outage = server.inject(outage.resource("events"));
        let a = reporting(&server, "a");
        leads(&a).await;
        pass(Duration::from_secs(12)).await;
        assert_eq!(notes(&server), ["a became leader"]);
        assert!(outage.hits() > 0);
        a.stop().await;
        assert_eq!(notes(&server), ["a became leader", "a stopped leading"]);
    }
}

/// No API server has answered 401: nothing was sent.
#[tokio::test(start_paused = true)]
async fn event_is_written_after_a_credential_plugin_has_failed() {
    let server = ApiServer::new();
    let (service, tried) = (server.service().user("a"), Arc::new(AtomicU32::new(0)));
    let attempts = tried.clone();
    let failing_once = service_fn(move |request: Request<Body>| {
        let (service, failed) = (service.clone(), tried.fetch_add(1, Ordering::SeqCst) == 0);
        async move {
            if failed {
                return Err(BoxError::from(AuthError::AuthExec("the plugin is away".into())));
            }
            service.oneshot(request).await
        }
    });
    let client = Client::new(failing_once, "default");
    let a = build(&server, "a", builder("a").events(client)).unwrap().start();
    leads(&a).await;
    pass(Duration::from_secs(12)).await;
    assert_eq!((attempts.load(Ordering::SeqCst), notes(&server)), (2, vec!["a became leader".to_owned()]));
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn event_is_tried_a_bounded_number_of_times() {
    for (fault, attempts) in [(Fault::status(503), 5), (Fault::forbidden(), 1), (Fault::status(401), 1)] {
        let server = ApiServer::new();
        let fault = server.inject(fault.resource("events"));
        let a = reporting(&server, "a");
        leads(&a).await;
        pass(Duration::from_secs(120)).await;
        assert_eq!(fault.hits(), attempts);
    }
}

/// While no event can be written, the newest 16 are kept.
#[tokio::test(start_paused = true)]
async fn only_newest_events_are_kept_during_outage() {
    let server = ApiServer::new();
    let hang = server.inject(Fault::hang_before().resource("events"));
    let a = reporting(&server, "a");
    leads(&a).await;
    until(SOON, "the first one hangs", || hang.hits() > 0).await;
    for _ in 0..15 {
        rob(&server);
        until(SOON, "the candidate loses the lease", || !a.candidate().is_leader()).await;
        leads(&a).await;
    }
    drop(hang);
    steal(&server);
    until(SOON, "the candidate loses the lease", || !a.candidate().is_leader()).await;
    pass(Duration::from_secs(10)).await;
    // The one that was under way, and those that waited.
    let sixteen = ["a became leader, 9 times", "a stopped leading, 8 times"];
    assert_eq!(notes(&server), sixteen);
}
