//! The alert rules and the dashboard use only metrics, labels and values that METRICS.md lists.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod promql;
mod table;

use promql::Names;
use promql_parser::label::MatchOp;
use serde_json::Value;
use std::collections::BTreeSet;
use table::{METRICS, Table};

const DASHBOARD: &str = include_str!("../../../../docs/observability/grafana-dashboard.json");
const RULES: &str = include_str!("../../../../docs/observability/prometheus-rules.yaml");

/// Checks an expression. Each text says what is wrong with it.
fn faults(expression: &str, table: &Table) -> Vec<String> {
    let names = Names::of(expression);
    let mut faults = Vec::new();
    let mut known = BTreeSet::new();
    for selector in &names.selectors {
        let Some(labels) = table.labels(&selector.metric) else {
            faults.push(format!("no metric {} in {expression}", selector.metric));
            continue;
        };
        known.extend(labels);
        for matcher in &selector.matchers {
            if !labels.contains(&matcher.name) {
                faults.push(format!("{} has no label {} in {expression}", selector.metric, matcher.name));
            }
            // A dashboard variable or a pattern may be anything, and so may the name of a lease.
            let exact =
                matches!(matcher.op, MatchOp::Equal | MatchOp::NotEqual) && !matcher.value.contains('$');
            if exact && !table.has_value(&matcher.name, &matcher.value) {
                faults.push(format!("{} is never {:?} in {expression}", matcher.name, matcher.value));
            }
        }
    }
    if names.selectors.is_empty() {
        faults.push(format!("no metric at all in {expression}"));
    }
    for label in names.grouped.iter().filter(|label| !known.contains(label)) {
        faults.push(format!("no metric has the label {label} in {expression}"));
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

#[test]
fn dashboard_uses_only_listed_metrics() {
    let table = Table::read();
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let mut expressions = Vec::new();
    strings(&dashboard["panels"], &["expr"], &mut expressions);
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.iter().all(|panel| panel["type"] == "row" || panel["targets"][0]["expr"].is_string()));
    let mut faults: Vec<_> = expressions.iter().flat_map(|expression| faults(expression, &table)).collect();
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        if variable["type"] == "query" {
            let query = variable["query"].as_str().expect("a query");
            let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
            let (selector, label) = inside.and_then(|inside| inside.rsplit_once(',')).expect("label_values");
            faults.extend(self::faults(selector, &table));
            assert!(table.has_label(label.trim()), "{query}");
        }
    }
    let mut legends = Vec::new();
    strings(&dashboard["panels"], &["legendFormat"], &mut legends);
    for name in legends.into_iter().flat_map(placeholders) {
        assert!(table.has_label(name), "a legend has {name}");
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn alert_rules_use_only_listed_metrics() {
    let table = Table::read();
    let rules: Value = serde_saphyr::from_str(RULES).expect("YAML");
    let mut expressions = Vec::new();
    strings(&rules, &["expr"], &mut expressions);
    let groups = rules["groups"].as_array().expect("groups");
    let alerts: Vec<_> = groups.iter().flat_map(|group| group["rules"].as_array().expect("rules")).collect();
    assert_eq!(alerts.len(), expressions.len());
    for alert in &alerts {
        let name = alert["alert"].as_str().expect("a name");
        let (labels, annotations) = (&alert["labels"], &alert["annotations"]);
        for part in [&labels["severity"], &annotations["summary"], &annotations["description"]] {
            assert!(part.is_string(), "{name} lacks a severity, a summary or a description");
        }
        assert!(METRICS.contains(name), "METRICS.md does not name {name}");
        let grouped = Names::of(alert["expr"].as_str().expect("an expression")).grouped;
        let mut texts = Vec::new();
        strings(annotations, &["summary", "description"], &mut texts);
        for label in texts.into_iter().flat_map(placeholders) {
            assert!(table.has_label(label), "{name} speaks of {label}");
            assert!(grouped.contains(label), "{name} speaks of {label}, which its expression drops");
        }
    }
    let faults: Vec<_> = expressions.iter().flat_map(|expression| faults(expression, &table)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn wrong_name_is_found() {
    let table = Table::read();
    let right =
        r#"sum by (name, pod) (rate(leader_gate_writes_total{decision="rejected", name=~"$name"}[5m]))"#;
    assert_eq!(faults(right, &table), Vec::<String>::new());
    for (right_word, wrong) in [
        ("leader_gate_writes_total", "leader_gate_write_total"),
        ("decision", "descision"),
        ("\"rejected\"", "\"refused\""),
        ("(name, pod)", "(lease, pod)"),
        ("name=~", "loss=~"),
    ] {
        let expression = right.replace(right_word, wrong);
        assert_ne!(faults(&expression, &table), Vec::<String>::new(), "{expression}");
    }
}
