//! The table in METRICS.md matches the exported metrics. The package `observability` compares the dashboard and the alert
//! rules with that table.

use crate::{
    observers::metrics::scrape::{Exporter, PUBLISHED, Scrape, measured},
    support::{SOON, pass, steal, until, within, write},
};
use futures_util::FutureExt;
use http::{Method, Request};
use kube_client::client::Body;
use kube_leader_gate::{
    LeaseTiming,
    metrics::BUCKETS,
    testing::{ApiServer, Fault},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const RULES: &str = include_str!("../../../../docs/observability/prometheus-rules.yaml");
const TABLE: &str = include_str!("../../../../docs/METRICS.md");

/// A scrape of a candidate that has met every case: writes of each fate, a failed call, a slow path, a loss and a
/// gap.
async fn everything() -> Scrape {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, client) = measured(&server).await;
    write(&client).await.unwrap();
    let event = Request::post("/apis/events.k8s.io/v1/namespaces/a/events").body(Body::empty()).unwrap();
    let _ = client.send(event).await;
    let failing = server.inject(Fault::status(409).verb("update").resource("leases").times(1));
    until(Duration::from_secs(3), "a renewal fails", || failing.hits() == 1).await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let mut hanging = Box::pin(write(&client));
    assert!((&mut hanging).now_or_never().is_none());
    until(SOON, "the write is under way", || a.candidate().leadership().writes_under_way() == 1).await;
    steal(&server);
    within(SOON, "the write is cut off", hanging).await.unwrap_err();
    let delete = Request::builder().method(Method::DELETE).uri("/api/v1/namespaces/a/pods/b");
    client.send(delete.body(Body::empty()).unwrap()).await.unwrap_err();
    pass(PUBLISHED).await;
    let scrape = exporter.scrape();
    drop(a);
    scrape
}

/// Each metric has a row with its kind, its labels and their values, and each row has a metric. Verbs and resources are
/// those of the program.
#[tokio::test(start_paused = true)]
async fn metrics_table_matches_exported_metrics() {
    let scrape = everything().await;
    let rows: Vec<_> = TABLE.lines().filter(|line| line.starts_with("| `leader_")).collect();
    let mut exported: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for (name, kind) in &scrape.types {
        let parts = ["", "_bucket", "_sum", "_count"].map(|part| format!("{name}{part}"));
        let samples = scrape.samples.iter().filter(|sample| parts.contains(&sample.name));
        let labels = samples.flat_map(|sample| sample.labels.keys().cloned());
        let own = labels.filter(|label| !["name", "lease_namespace", "le"].contains(&label.as_str()));
        exported.insert(name.clone(), (kind.clone(), own.collect()));
        for sample in scrape.samples.iter().filter(|sample| parts.contains(&sample.name)) {
            assert_eq!(sample.labels["name"], "operator");
            assert_eq!(sample.labels["lease_namespace"], "default");
            for label in ["decision", "loss", "call", "error"] {
                let Some(value) = sample.labels.get(label) else { continue };
                let codes = [label, value].map(|it| format!("`{it}`"));
                let listed = rows.iter().any(|row| codes.iter().all(|code| row.contains(code)));
                assert!(listed, "no row lists {label}={value}, which {name} has");
            }
        }
    }
    let code = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let listed: BTreeMap<_, _> = rows
        .iter()
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let labels = code(cells[2]).into_iter().collect();
            (code(cells[0])[0].clone(), (cells[1].to_owned(), labels))
        })
        .collect();
    assert_eq!(listed, exported);
    assert!(BUCKETS.iter().all(|(name, _)| exported[*name].0 == "histogram"));
    // Values that the dashboard and the alerts choose.
    let row = rows.iter().find(|row| row.contains("`decision`")).expect("a row");
    let says: BTreeSet<_> = code(row.rsplit('|').nth(1).expect("a cell")).into_iter().collect();
    let decisions = scrape.samples.iter().filter_map(|sample| sample.labels.get("decision").cloned());
    let decisions: BTreeSet<_> = decisions.chain(["deployments.apps/scale".to_owned()]).collect();
    assert_eq!(says, decisions, "and the example of a resource");
    assert!(scrape.has("leader_election_lease_call_failures_total", &[("call", "renew")]));
}

/// The rules are written for the default timing. The document says what to change for another one.
#[test]
fn alert_rules_fit_default_timing() {
    let rules: Value = serde_saphyr::from_str(RULES).expect("YAML");
    let groups = rules["groups"].as_array().unwrap();
    let rules: Vec<_> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    let no_leader = rules.iter().find(|rule| rule["alert"] == "LeaderElectionNoLeader").expect("the alert");
    let wait = no_leader["for"].as_str().and_then(|wait| wait.strip_suffix('s')).expect("seconds");
    let wait = Duration::from_secs(wait.parse().unwrap());
    // Candidates without a watch see the last renewal up to one poll late.
    let timing = LeaseTiming::default();
    let successor = timing.lease_duration() + timing.retry_period().mul_f64(1.2);
    let scrape = Duration::from_secs(60);
    assert!(wait > successor + scrape, "a crash is no alert by itself");
}
