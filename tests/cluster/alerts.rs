//! The alert rules: Prometheus accepts them, and each alert fires in its own scenario and in no other.

use crate::apiserver;
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// Ends each scenario: all alerts that have fired in it, at any time.
const FIRED: &str = r#"group by (alertname) (last_over_time(ALERTS{alertstate="firing"}[1d]))"#;

const RULES: &str = "prometheus-rules.yaml";
const SCENARIOS: &str = "prometheus-rules-test.yaml";

fn promtool(arguments: &[&str], file: &str) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observability");
    let output = Command::new(apiserver::promtool()).args(arguments).arg(file).current_dir(folder).output();
    let output = output.expect("promtool runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let accepted = output.status.success() && out.contains("SUCCESS");
    if accepted { Ok(()) } else { Err(format!("promtool {arguments:?} {file}:\n{out}{err}")) }
}

pub fn promtool_accepts_the_rules() {
    promtool(&["check", "rules", "--lint=all", "--lint-fatal"], RULES)
        .unwrap_or_else(|error| panic!("{error}"));
}

pub fn alerts_fire_in_their_scenarios_alone() {
    let Err(error) = promtool(&["test", "rules"], SCENARIOS) else { return };
    // This does not say in which scenario an alert has fired, so ask for each.
    for scenario in list(&document(SCENARIOS), "tests") {
        let only = format!("^{}$", text(scenario, "name"));
        promtool(&["test", "rules", "--run", &only], SCENARIOS).unwrap_or_else(|error| panic!("{error}"));
    }
    panic!("{error}");
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn document(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observability").join(name);
    serde_saphyr::from_str(&fs::read_to_string(path).expect("a document")).expect("YAML")
}

/// What the scenarios lack for these rules.
fn gaps(rules: &Value, scenarios: &Value) -> Vec<String> {
    let mut gaps = Vec::new();
    let scenarios = list(scenarios, "tests");
    let fired = |scenario: &Value| -> Option<Vec<String>> {
        let asked = list(scenario, "promql_expr_test").iter().find(|it| it["expr"] == FIRED)?;
        Some(list(asked, "exp_samples").iter().map(|sample| text(sample, "labels").to_owned()).collect())
    };
    for scenario in scenarios {
        if fired(scenario).is_none() {
            gaps.push(format!("the scenario {} does not end with {FIRED}", text(scenario, "name")));
        }
    }
    for rule in list(rules, "groups").iter().flat_map(|group| list(group, "rules")) {
        let alert = text(rule, "alert");
        let own: Vec<_> = scenarios.iter().filter(|it| it["name"] == alert).collect();
        let [own] = own[..] else {
            gaps.push(format!("{alert} has {} scenarios of its name", own.len()));
            continue;
        };
        if fired(own) != Some(vec![format!(r#"{{alertname="{alert}"}}"#)]) {
            gaps.push(format!("{alert} does not fire alone in its scenario"));
        }
        let mut shown = list(own, "alert_rule_test").iter().filter(|it| it["alertname"] == alert);
        if !shown.any(|it| !list(it, "exp_alerts").is_empty()) {
            gaps.push(format!("the scenario of {alert} does not show what the alert says"));
        }
    }
    gaps
}

pub fn every_alert_has_its_scenario() {
    let (rules, scenarios) = (document(RULES), document(SCENARIOS));
    assert_eq!(gaps(&rules, &scenarios), Vec::<String>::new());
    let healthy = |it: &&Value| list(&it["promql_expr_test"][0], "exp_samples").is_empty();
    assert!(list(&scenarios, "tests").iter().filter(healthy).count() >= 5, "in which no alert fires");

    // It would find a new alert without one.
    let mut more = rules.clone();
    let group = more["groups"][0]["rules"].as_array_mut().expect("rules");
    group.push(serde_json::json!({ "alert": "New", "expr": "up == 0" }));
    assert_eq!(gaps(&more, &scenarios), ["New has 0 scenarios of its name"]);
}
