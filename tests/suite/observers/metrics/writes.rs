//! The fates of writes, in a bounded number of series.

use crate::{
    observers::metrics::scrape::{Exporter, PUBLISHED, measured},
    support::{SOON, build, builder, is_cut_off, is_not_leader, leading, pass, steal, until, within, write},
};
use futures_util::{FutureExt, future::join};
use http::{Method, Request, Response};
use kube_client::{Client, client::Body};
use kube_leader_gate::{
    Policy, WriteGateLayer,
    policy::Preset,
    testing::{ApiServer, Fault},
};
use std::{collections::BTreeSet, convert::Infallible};
use tower::{ServiceBuilder, ServiceExt, service_fn};

async fn send(client: &Client, method: Method, path: &str) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let _ = client.send(request).await;
}

#[tokio::test(start_paused = true)]
async fn writes_are_counted_by_verb_and_resource() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, client) = measured(&server).await;
    write(&client).await.unwrap();
    send(&client, Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/b/scale").await;
    send(&client, Method::GET, "/api/v1/namespaces/a/pods/b/exec?command=ls").await;
    send(&client, Method::POST, "/apis/events.k8s.io/v1/namespaces/a/events").await;
    send(&client, Method::GET, "/api/v1/namespaces/a/pods").await;
    send(&client, Method::POST, "/metrics").await;
    send(&client, Method::POST, "/api/v1/namespaces/%61/pods").await;
    let counted = |decision, verb, resource| {
        exporter.value(
            "leader_gate_writes_total",
            &[("decision", decision), ("verb", verb), ("resource", resource)],
        )
    };
    assert_eq!(counted("admitted", "create", "tokenreviews.authentication.k8s.io"), 1.0);
    assert_eq!(counted("admitted", "patch", "deployments.apps/scale"), 1.0);
    assert_eq!(counted("admitted", "connect", "pods/exec"), 1.0);
    assert_eq!(counted("exempted", "create", "events.events.k8s.io"), 1.0);
    assert_eq!(counted("admitted", "post", "none"), 1.0);
    assert_eq!(counted("admitted", "unknown", "none"), 1.0, "a path that may mean anything");
    assert_eq!(exporter.value("leader_gate_writes_total", &[]), 6.0, "the read is not counted");

    steal(&server);
    until(SOON, "the lease is lost", || !a.candidate().can_write()).await;
    for _ in 0..3 {
        assert!(is_not_leader(&write(&client).await));
    }
    assert_eq!(counted("rejected", "create", "tokenreviews.authentication.k8s.io"), 3.0);
    assert_eq!(exporter.value("leader_gate_writes_total", &[]), 9.0);
}

/// This includes a gate with another policy, and an observer that was added after the election began.
#[tokio::test(start_paused = true)]
async fn every_gate_of_an_election_counts() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (_b, _) = leading(&server, "b").await;
    let election = build(&server, "a", builder("a").metrics()).unwrap();
    let wrapped = election.wrap(Client::new(server.service(), "default"));
    let direct = election.layer();
    let other = election.layer().with_policy(Policy::strict().allow(Preset::Events));
    let a = election.start();
    assert!(is_not_leader(&write(&wrapped).await));
    let charge = || async { Ok::<_, Infallible>(()) };
    a.candidate().guard("charge the card", charge()).await.unwrap_err();
    a.candidate().admit("charge the card").unwrap_err();
    for layer in [direct, other] {
        let service = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(())));
        let service = ServiceBuilder::new().layer(layer).service(service);
        let _ = service
            .oneshot(Request::post("/apis/events.k8s.io/v1/namespaces/a/events").body(()).unwrap())
            .await;
    }
    let counted = |decision| exporter.value("leader_gate_writes_total", &[("decision", decision)]);
    assert_eq!((counted("rejected"), counted("exempted")), (4.0, 1.0), "each write counts at once");
    let labelled = [("decision", "rejected"), ("verb", "unknown"), ("resource", "charge the card")];
    assert_eq!(exporter.value("leader_gate_writes_total", &labelled), 2.0);
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn open_and_cut_off_writes_are_counted() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, client) = measured(&server).await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let (mut hanging, mut too) = (Box::pin(write(&client)), Box::pin(write(&client)));
    assert!((&mut hanging).now_or_never().is_none() && (&mut too).now_or_never().is_none());
    until(SOON, "the writes are under way", || a.candidate().leadership().writes_under_way() == 2).await;
    pass(PUBLISHED).await;
    assert_eq!(exporter.value("leader_gate_writes_under_way", &[]), 2.0);
    for verb in ["create", "update", "patch", "delete", "deletecollection", "connect"] {
        let counted = exporter.value("leader_gate_writes_cut_off_total", &[("verb", verb)]);
        assert_eq!(counted, 0.0, "{verb}: an alert sees an increase only if the series has begun at zero");
    }
    steal(&server);
    let (first, second) = within(SOON, "the writes are cut off", join(hanging, too)).await;
    assert!(is_cut_off(&first) && is_cut_off(&second));
    pass(PUBLISHED).await;
    assert_eq!(exporter.value("leader_gate_writes_under_way", &[]), 0.0);
    assert_eq!(exporter.value("leader_gate_writes_cut_off_total", &[("verb", "create")]), 2.0);
    assert_eq!(exporter.value("leader_gate_writes_cut_off_total", &[]), 2.0);
}

/// Sends a rejected create to each path, through one gate that the exporter observes.
async fn reject(paths: impl IntoIterator<Item = String>) {
    let election = build(&ApiServer::new(), "a", builder("a").metrics()).unwrap();
    let layer: WriteGateLayer = election.layer();
    let service = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(())));
    let service = ServiceBuilder::new().layer(layer).service(service);
    // The gate admits nothing before the election begins.
    for path in paths {
        let request = Request::post(path).body(()).unwrap();
        service.clone().oneshot(request).await.expect_err("rejected");
    }
}

#[tokio::test(start_paused = true)]
async fn many_resources_make_bounded_number_of_series() {
    let exporter = Exporter::install();
    reject((0..10_000).map(|n| format!("/apis/group{n}.example/v1/namespaces/a/kinds"))).await;
    let scrape = exporter.scrape();
    let series = || scrape.samples.iter().filter(|sample| sample.name == "leader_gate_writes_total");
    assert_eq!(series().count(), 64 + 1);
    let sum: f64 = series().map(|sample| sample.value).sum();
    assert_eq!(sum, 10_000.0, "none is lost");
    assert_eq!(scrape.value("leader_gate_writes_total", &[("resource", "kinds.group0.example")]), 1.0);
    assert_eq!(scrape.value("leader_gate_writes_total", &[("resource", "other")]), 10_000.0 - 64.0);
}

#[tokio::test(start_paused = true)]
async fn impossible_resource_name_is_no_label() {
    let exporter = Exporter::install();
    let long = "x".repeat(64);
    let paths = [
        format!("/apis/example.com/v1/{long}"),
        format!("/apis/example.com/v1/namespaces/a/kinds/b/{long}"),
        format!("/apis/{}/v1/kinds", ["label"; 50].join(".")),
        "/apis/example.com/v1/kinds%22%7D".to_owned(),
        "/apis/example.com/v1/Kinds".to_owned(),
        "/anything/at/all".to_owned(),
    ];
    reject(paths).await;
    let scrape = exporter.scrape();
    let series = scrape.samples.iter().filter(|sample| sample.name == "leader_gate_writes_total");
    let resources: BTreeSet<_> = series.map(|sample| sample.labels["resource"].as_str()).collect();
    assert_eq!(resources, BTreeSet::from(["none", "other"]));
    assert_eq!(scrape.value("leader_gate_writes_total", &[("resource", "other")]), 3.0);
}
