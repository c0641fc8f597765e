//! Each setting as a variable, the manual and the version.

use crate::{
    callers::{MAPS, ask, get, request},
    process::{Sidecar, binary, kubeconfig, run_by},
    upstream::Upstream,
};
use std::{fs, process::Command};
use tempfile::TempDir;

const SETTINGS: [&str; 13] = [
    "lease",
    "listen",
    "status",
    "metrics",
    "identity",
    "lease-label",
    "timing",
    "kubeconfig",
    "allow",
    "lead-if",
    "list-again",
    "fence",
    "accept-host",
];

fn output(option: &str) -> String {
    let output = Command::new(binary()).arg(option).output().expect("it runs");
    assert!(output.status.success(), "{option}: {}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn each_option_names_its_variable() {
    let manual = output("--help");
    let mut options: Vec<_> =
        manual.lines().filter_map(|line| line.trim_start().strip_prefix("--")?.split(" <").next()).collect();
    assert_eq!(options.pop(), Some("log"));
    assert_eq!(options, SETTINGS);
    let variables = SETTINGS.map(|name| format!("LEADER_GATE_{}", name.to_uppercase().replace('-', "_")));
    for variable in variables.iter().map(String::as_str).chain(["RUST_LOG"]) {
        assert!(manual.contains(&format!("[env: {variable}=")), "{variable}: {manual}");
    }
}

#[test]
fn manual_names_each_exit_status() {
    let manual = output("--help");
    let (_, statuses) = manual.split_once("Exit status:").expect("a chapter");
    for code in [0, 1, 2, 130, 143] {
        assert!(statuses.lines().any(|line| line.trim_start().starts_with(&format!("{code} "))), "{code}");
    }
    assert_eq!(output("--version"), concat!("kube-leader-gate-sidecar ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// All settings as variables, but for what the options say.
async fn start(upstream: &Upstream, options: &[&str]) -> Sidecar {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    fs::write(&file, kubeconfig(&upstream.url(), "a").to_string()).unwrap();
    let mut command = Command::new(binary());
    command.args(options).env("LEADER_GATE_KUBECONFIG", file).envs([
        ("LEADER_GATE_LEASE", "default/app"),
        ("LEADER_GATE_LISTEN", "127.0.0.1:0"),
        ("LEADER_GATE_STATUS", "127.0.0.1:0"),
        ("LEADER_GATE_METRICS", "127.0.0.1:0"),
        ("LEADER_GATE_IDENTITY", "a"),
        ("LEADER_GATE_LEASE_LABEL", "app=my-app,tier=a"),
        ("LEADER_GATE_TIMING", "fast"),
        ("LEADER_GATE_ALLOW", "exec,dry-run"),
        ("LEADER_GATE_LEAD_IF", ""),
        ("LEADER_GATE_LIST_AGAIN", "false"),
        ("LEADER_GATE_FENCE", ""),
        ("LEADER_GATE_ACCEPT_HOST", "app.test,10.0.0.7"),
    ]);
    Sidecar::start_by(command, folder).await
}

#[tokio::test]
async fn variables_set_what_options_set() {
    let upstream = Upstream::start().await;
    upstream.held_by("outsider");
    let sidecar = start(&upstream, &[]).await;
    sidecar.sees("outsider").await;
    assert_eq!(sidecar.leader().await["identity"], "a");
    let write = |query: &str| request("POST", &format!("{MAPS}{query}"), r#"{"metadata":{"name":"x"}}"#);
    assert_eq!(ask(sidecar.addr, write("?dryRun=All")).await.code, 201, "--allow");
    assert_eq!(ask(sidecar.addr, write("")).await.code, 424);
    assert_eq!(get(sidecar.metrics(), "/metrics").await.code, 200, "--metrics");
    for host in ["app.test", "10.0.0.7"] {
        let mut read = request("GET", "/version", "");
        read.headers_mut().insert("host", host.parse().unwrap());
        assert_eq!(ask(sidecar.addr, read).await.code, 200, "{host}");
    }
}

/// The table of the page has each option, variable and default of the manual.
#[test]
fn page_has_each_option_of_the_manual() {
    let page = include_str!("../../README.md");
    let (_, options) = page.split_once("\n## Options\n").expect("the table");
    let manual = output("--help");
    for name in SETTINGS.iter().chain(&["log"]) {
        let (_, about) = manual.split_once(&format!("\n      --{name} <")).expect("an option");
        let (value, about) = about.split_once('>').expect("an end");
        let variable = about.split("[env: ").nth(1).and_then(|it| it.split('=').next()).expect("a variable");
        let row = format!("| `--{name} {value}` | `{variable}` | ");
        let row =
            options.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("no row {row}"));
        let own = about.split("\n\n      --").next().expect("its text");
        if let Some(default) = own.split("[default: ").nth(1).and_then(|it| it.split(']').next())
            && !default.contains(' ')
        {
            assert!(row.contains(&format!("| `{default}` |")), "{row}: {default}");
        }
    }
}

#[tokio::test]
async fn created_lease_has_its_labels() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &["--lease-label", "app=my-app,tier=a"]).await;
    sidecar.leads().await;
    let lease = upstream.server.object("/apis/coordination.k8s.io/v1/namespaces/default/leases/app").unwrap();
    assert_eq!(lease["metadata"]["labels"], serde_json::json!({ "app": "my-app", "tier": "a" }));
}

#[tokio::test]
async fn option_counts_before_its_variable() {
    let upstream = Upstream::start().await;
    let sidecar = start(&upstream, &["--identity", "b"]).await;
    assert_eq!(sidecar.leader().await["identity"], "b");
}

#[tokio::test]
async fn wrong_variable_is_a_usage_error() {
    for (name, value, said) in [
        ("LEADER_GATE_LEASE", "app", "--lease"),
        ("LEADER_GATE_LEASE", "", "--lease"),
        ("LEADER_GATE_ALLOW", "exec,everything", "everything"),
        ("LEADER_GATE_LEASE_LABEL", "app", "--lease-label"),
        ("RUST_LOG", "info,=,", "--log"),
    ] {
        let mut command = Command::new(binary());
        command
            .env("LEADER_GATE_LEASE", "default/app")
            .env("LEADER_GATE_LISTEN", "127.0.0.1:0")
            .env(name, value);
        let (status, log) = run_by(&command).await;
        assert_eq!(status.code(), Some(2), "{name}={value}: {log}");
        assert!(log.contains(said), "{log}");
    }
}
