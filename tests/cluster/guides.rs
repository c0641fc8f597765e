//! The manifests in the documents: a real server accepts them, and their times fit together.

use crate::{
    apiserver::{self, Cluster},
    support::until,
};
use clap::Parser;
use kube_client::Config;
use kube_leader_gate::{Election, LeaseTiming, health::Health};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use test_support::kube_leader_gate_sidecar::Args;

/// The deployment of an application with the sidecar.
const SIDECAR: &str = "crates/sidecar/deploy.yaml";

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guides = fs::read_dir(root.join("docs")).expect("docs").map(|entry| entry.expect("an entry").path());
    let mut documents: Vec<_> = guides.filter(|it| it.extension().is_some_and(|it| it == "md")).collect();
    documents.extend(["README.md", SIDECAR].map(|it| root.join(it)));
    documents
}

/// The YAML in a document, block by block, or a file of YAML.
fn manifests(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).expect("a document");
    if document.extension().is_some_and(|it| it == "yaml") {
        return vec![text];
    }
    let blocks = text.split("\n```yaml\n").skip(1);
    blocks.map(|block| block.split_once("\n```").expect("an end").0.to_owned()).collect()
}

fn apply(cluster: &Cluster, manifest: &str) -> Result<(), String> {
    let mut kubectl = cluster.kubectl("admin");
    kubectl.args(["create", "--dry-run=server", "--validate=strict", "-f", "-"]);
    let mut kubectl =
        kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    kubectl.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    let output = kubectl.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

pub async fn real_server_accepts_each_documented_manifest() {
    let cluster = apiserver::shared().await;
    let namespace = cluster.kubectl("admin").args(["create", "namespace", "my-namespace"]).output().unwrap();
    assert!(namespace.status.success(), "{}", String::from_utf8_lossy(&namespace.stderr));
    let mut accepted = 0;
    for document in documents() {
        for manifest in manifests(&document) {
            apply(cluster, &manifest)
                .unwrap_or_else(|error| panic!("{}: {error}\n{manifest}", document.display()));
            accepted += manifest.split("\n---\n").count();
        }
    }
    assert!(accepted >= 5, "only {accepted} objects found");
    let typo =
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: x, namespace: my-namespace, lable: y }";
    assert!(apply(cluster, typo).is_err(), "it looks");
}

/// The questions of the checklist for production. The answers are yes with the documented Role, and no without it.
pub async fn checklist_asks_for_what_the_role_grants() {
    let cluster = apiserver::shared().await;
    let namespace = cluster.namespace().await;
    let guide = include_str!("../../docs/PRODUCTION.md").replace("my-namespace", &namespace);
    let questions: Vec<_> =
        guide.lines().filter_map(|line| line.strip_prefix("kubectl auth can-i ")).collect();
    assert_eq!(questions.len(), 4, "{questions:?}");
    let answers = || {
        let ask = |question: &&str| {
            cluster.kubectl("admin").args(["auth", "can-i"]).args(question.split(' ')).output()
        };
        let answers = questions.iter().map(|question| ask(question).expect("kubectl runs").stdout);
        answers.map(|answer| String::from_utf8_lossy(&answer).trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(answers(), ["no"; 4]);
    let rollout = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/PRODUCTION.md");
    let mut granting = manifests(&rollout);
    granting.retain(|it| it.contains("name: my-controller-election"));
    assert_eq!(granting.len(), 2, "the Role and its binding");
    let file = cluster.folder().join("role.yaml");
    fs::write(&file, granting.join("\n---\n").replace("my-namespace", &namespace)).expect("a folder");
    let created = cluster.kubectl("admin").arg("create").arg("-f").arg(file).output().expect("kubectl runs");
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    until("the Role is in force", async || answers() == ["yes"; 4]).await;
}

/// The first object of this kind in the document.
fn object(document: &str, kind: &str) -> Value {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let manifests = manifests(&document).join("\n---\n");
    let objects = manifests.split("\n---\n").map(|it| serde_saphyr::from_str::<Value>(it).expect("YAML"));
    objects.into_iter().find(|it| it["kind"] == kind).expect("an object of this kind")
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().expect("seconds"))
}

/// Ten seconds for the workload, ten for the drain, the wait after a write without an answer, five lease calls.
fn longest_stop() -> Duration {
    let timing = LeaseTiming::default();
    Duration::from_secs(20) + timing.safety_margin() + timing.call_timeout() * 5
}

/// The pages with a Deployment of an operator.
const DEPLOYMENTS: [&str; 2] = ["docs/PRODUCTION.md", "docs/GETTING_STARTED.md"];

pub fn deployment_termination_grace_covers_a_stop() {
    for page in DEPLOYMENTS {
        let pod = &object(page, "Deployment")["spec"]["template"]["spec"];
        let pre_stop = &pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"];
        let needed = Duration::from_secs(pre_stop.as_u64().unwrap_or(0)) + longest_stop();
        assert!(seconds(&pod["terminationGracePeriodSeconds"]) >= needed, "{page}: {needed:?}");
    }
}

/// The election answers each probe. One failed lease call, and the next one, are over before a replica counts as
/// unready.
pub async fn deployment_probes_fit_the_election() {
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let election = Election::builder("my-namespace", "my-controller").build(&config).unwrap();
    let health = Health::new(election.candidate(), Duration::from_secs(20));
    for page in DEPLOYMENTS {
        let pod = &object(page, "Deployment")["spec"]["template"]["spec"];
        for (probe, status) in [("livenessProbe", 200), ("readinessProbe", 503)] {
            let path = pod["containers"][0][probe]["httpGet"]["path"].as_str().expect("a path");
            assert_eq!(
                health.answer(path).status,
                status,
                "{page}: {probe} of an election that has not begun"
            );
        }
        let probe = &pod["containers"][0]["readinessProbe"];
        // Kubernetes' own defaults are 3 times and 10 s.
        let failures = u32::try_from(probe["failureThreshold"].as_u64().unwrap_or(3)).unwrap();
        let patience = Duration::from_secs(probe["periodSeconds"].as_u64().unwrap_or(10)) * (failures - 1);
        assert!(patience > LeaseTiming::default().call_timeout() * 2, "{page}: {patience:?}");
    }
}

pub fn sidecar_termination_grace_covers_a_stop() {
    let pod = &object(SIDECAR, "Deployment")["spec"]["template"]["spec"];
    let last_answers = Duration::from_secs(5);
    let needed = longest_stop() + last_answers;
    assert!(seconds(&pod["terminationGracePeriodSeconds"]) >= needed, "{needed:?}");
}

/// Kubernetes accepts any text as a setting or as a kubeconfig, so this test reads them.
pub fn sidecar_manifest_is_consistent() {
    let deployment = object(SIDECAR, "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let sidecar = &pod["initContainers"][0];
    assert_eq!(sidecar["restartPolicy"], "Always", "a native sidecar");
    let variable = |name: &str| {
        let mut variables = sidecar["env"].as_array().expect("variables").iter();
        variables.find(|it| it["name"] == name).expect("a variable")["value"]
            .as_str()
            .expect("a value")
            .to_owned()
    };
    let lease = variable("LEADER_GATE_LEASE");
    let listen = variable("LEADER_GATE_LISTEN");
    let status = variable("LEADER_GATE_STATUS");
    let metrics = variable("LEADER_GATE_METRICS");
    let options =
        ["sidecar", "--lease", &lease, "--listen", &listen, "--status", &status, "--metrics", &metrics];
    let args = Args::try_parse_from(options).unwrap_or_else(|error| panic!("{error}"));
    let metrics = args.metrics.expect("an address");
    assert!(metrics.ip().is_unspecified(), "Prometheus asks from another pod");
    assert_eq!(sidecar["ports"], json!([{ "name": "metrics", "containerPort": metrics.port() }]));

    let kubeconfig = object(SIDECAR, "ConfigMap")["data"]["config"].as_str().expect("text").to_owned();
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).expect("YAML");
    assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], format!("http://{listen}"));
    let image = include_str!("../../crates/sidecar/Containerfile");
    for (probe, page) in [("startupProbe", "readyz"), ("livenessProbe", "livez")] {
        let command = sidecar[probe]["exec"]["command"].as_array().expect("a command");
        // Where to ask is a variable of the container.
        assert_eq!(command[1..], ["probe", page]);
        assert!(
            image.contains(&format!("ENTRYPOINT [{}]", command[0])),
            "{} is not in the image",
            command[0]
        );
    }

    let role = object(SIDECAR, "Role");
    assert_eq!(lease, format!("{}/my-app", role["metadata"]["namespace"].as_str().unwrap()));
    assert_eq!(role["rules"][1]["resourceNames"][0], "my-app");
    let pods = &deployment["spec"]["selector"];
    assert_eq!(object(SIDECAR, "PodDisruptionBudget")["spec"]["selector"], *pods);
    assert_eq!(pod["topologySpreadConstraints"][0]["labelSelector"], *pods);
}
