//! The documents match the exported metrics: every metric, label and label value in them occurs in a scrape.

use crate::{
    metrics::promql::Names,
    metrics::scrape::{Exporter, PUBLISHED, Scrape, measured},
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
use promql_parser::label::MatchOp;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const DASHBOARD: &str = include_str!("../../../docs/observability/grafana-dashboard.json");
const RULES: &str = include_str!("../../../docs/observability/prometheus-rules.yaml");
const TABLE: &str = include_str!("../../../docs/METRICS.md");

/// Labels that a scrape adds to every series.
const OF_THE_TARGET: [&str; 4] = ["instance", "job", "namespace", "pod"];

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
    until(SOON, "the write is under way", || a.candidate().writes_under_way() == 1).await;
    steal(&server);
    within(SOON, "the write is cut off", hanging).await.unwrap_err();
    let delete = Request::builder().method(Method::DELETE).uri("/api/v1/namespaces/a/pods/b");
    client.send(delete.body(Body::empty()).unwrap()).await.unwrap_err();
    pass(PUBLISHED).await;
    let scrape = exporter.scrape();
    drop(a);
    scrape
}

/// Checks an expression. The error says what is wrong with it.
fn faults(expression: &str, scrape: &Scrape) -> Vec<String> {
    let names = Names::of(expression);
    let mut faults = Vec::new();
    let mut known = BTreeSet::from(OF_THE_TARGET);
    for selector in &names.selectors {
        let series: Vec<_> = scrape.samples.iter().filter(|sample| sample.name == selector.metric).collect();
        if series.is_empty() {
            faults.push(format!("no metric {} in {expression}", selector.metric));
        }
        known.extend(series.iter().flat_map(|sample| sample.labels.keys().map(String::as_str)));
        for matcher in &selector.matchers {
            let values: BTreeSet<_> =
                series.iter().filter_map(|sample| sample.labels.get(&matcher.name)).collect();
            if values.is_empty() && !OF_THE_TARGET.contains(&matcher.name.as_str()) {
                faults.push(format!("{} has no label {} in {expression}", selector.metric, matcher.name));
            }
            // A dashboard variable, a pattern or an excluded value may be anything.
            let exact = matcher.op == MatchOp::Equal && !matcher.value.contains('$');
            if exact && !values.is_empty() && !values.contains(&matcher.value) {
                faults.push(format!("{} is never {:?} in {expression}", matcher.name, matcher.value));
            }
        }
    }
    if names.selectors.is_empty() {
        faults.push(format!("no metric at all in {expression}"));
    }
    for label in &names.grouped {
        if !known.contains(label.as_str()) {
            faults.push(format!("no metric has the label {label} in {expression}"));
        }
    }
    faults
}

/// Every string below a key of one of these names.
fn strings<'a>(value: &'a Value, keys: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => found.push(text),
                    other => strings(other, keys, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, keys, found)),
        _ => {}
    }
}

/// The names between `{{` and `}}`, without the part before the last dot.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).filter_map(|rest| {
        let (inside, _) = rest.split_once("}}")?;
        let inside = inside.split('|').next()?.trim();
        Some(inside.strip_prefix("$labels.").unwrap_or(inside)).filter(|name| !name.starts_with('$'))
    })
}

fn labels(scrape: &Scrape) -> BTreeSet<&str> {
    let labels = scrape.samples.iter().flat_map(|sample| sample.labels.keys().map(String::as_str));
    labels.chain(OF_THE_TARGET).collect()
}

#[tokio::test(start_paused = true)]
async fn dashboard_uses_only_exported_metrics() {
    let scrape = everything().await;
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let mut expressions = Vec::new();
    strings(&dashboard["panels"], &["expr"], &mut expressions);
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.iter().all(|panel| panel["type"] == "row" || panel["targets"][0]["expr"].is_string()));
    let mut faults: Vec<_> = expressions.iter().flat_map(|expression| faults(expression, &scrape)).collect();
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        if variable["type"] == "query" {
            let query = variable["query"].as_str().expect("a query");
            let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
            let (selector, label) = inside.and_then(|inside| inside.rsplit_once(',')).expect("label_values");
            faults.extend(self::faults(selector, &scrape));
            assert!(labels(&scrape).contains(label.trim()), "{query}");
        }
    }
    let mut legends = Vec::new();
    strings(&dashboard["panels"], &["legendFormat"], &mut legends);
    for name in legends.into_iter().flat_map(placeholders) {
        assert!(labels(&scrape).contains(name), "a legend has {name}");
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test(start_paused = true)]
async fn alert_rules_use_only_exported_metrics() {
    let scrape = everything().await;
    let rules: Value = serde_saphyr::from_str(RULES).expect("YAML");
    let mut expressions = Vec::new();
    strings(&rules, &["expr"], &mut expressions);
    let alerts: Vec<_> = rules["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    assert_eq!(alerts.len(), expressions.len());
    for alert in &alerts {
        let name = alert["alert"].as_str().expect("a name");
        for part in [
            &alert["labels"]["severity"],
            &alert["annotations"]["summary"],
            &alert["annotations"]["description"],
        ] {
            assert!(part.is_string(), "{name} lacks a severity, a summary or a description");
        }
        assert!(TABLE.contains(name), "METRICS.md does not name {name}");
        let grouped = Names::of(alert["expr"].as_str().unwrap()).grouped;
        let mut texts = Vec::new();
        strings(&alert["annotations"], &["summary", "description"], &mut texts);
        for label in texts.into_iter().flat_map(placeholders) {
            assert!(labels(&scrape).contains(label), "{name} speaks of {label}");
            assert!(grouped.contains(label), "{name} speaks of {label}, which its expression drops");
        }
    }
    let faults: Vec<_> = expressions.iter().flat_map(|expression| faults(expression, &scrape)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test(start_paused = true)]
async fn wrong_metric_name_is_found() {
    let scrape = everything().await;
    let right =
        r#"sum by (name, pod) (rate(leader_gate_writes_total{decision="rejected", name=~"$name"}[5m]))"#;
    assert_eq!(faults(right, &scrape), Vec::<String>::new());
    for (right_word, wrong) in [
        ("leader_gate_writes_total", "leader_gate_write_total"),
        ("decision", "descision"),
        ("\"rejected\"", "\"refused\""),
        ("(name, pod)", "(lease, pod)"),
    ] {
        let expression = right.replace(right_word, wrong);
        assert_ne!(faults(&expression, &scrape), Vec::<String>::new(), "{expression}");
    }
}

/// Each metric has a row with its kind and its labels, and each row has a metric.
#[tokio::test(start_paused = true)]
async fn metrics_table_matches_exported_metrics() {
    let scrape = everything().await;
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
        }
    }
    let rows = TABLE.lines().filter(|line| line.starts_with("| `leader_"));
    let code = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let listed: BTreeMap<_, _> = rows
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let labels = code(cells[2]).into_iter().collect();
            (code(cells[0])[0].clone(), (cells[1].to_owned(), labels))
        })
        .collect();
    assert_eq!(listed, exported);
    assert!(BUCKETS.iter().all(|(name, _)| exported[*name].0 == "histogram"));
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
    let (successor, scrape) = (LeaseTiming::default().polled_crash_failover(), Duration::from_secs(60));
    assert!(wait > successor + scrape, "a crash is no alert by itself");
}
