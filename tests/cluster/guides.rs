//! The manifests in the documents: a real server accepts them, and their times fit together.

use crate::{
    apiserver::{self, Cluster},
    support::until,
};
use kube_client::Config;
use kube_leader_gate::{Election, LeaseTiming, health::Health};
use serde_json::Value;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guides = fs::read_dir(root.join("docs")).expect("docs").map(|entry| entry.expect("an entry").path());
    let mut documents: Vec<_> = guides.filter(|it| it.extension().is_some_and(|it| it == "md")).collect();
    documents.push(root.join("README.md"));
    documents
}

/// The YAML in a document, block by block.
fn manifests(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).expect("a document");
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
            accepted += 1;
        }
    }
    assert!(accepted >= 5, "only {accepted} manifests found");
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
    let rollout = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ROLLOUT.md");
    let mut granting = manifests(&rollout);
    granting.retain(|it| it.contains("name: my-controller-election"));
    assert_eq!(granting.len(), 2, "the Role and its binding");
    let file = cluster.folder().join("role.yaml");
    fs::write(&file, granting.join("\n---\n").replace("my-namespace", &namespace)).expect("a folder");
    let created = cluster.kubectl("admin").arg("create").arg("-f").arg(file).output().expect("kubectl runs");
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    until("the Role is in force", async || answers() == ["yes"; 4]).await;
}

/// The object of this kind in the guide.
fn object(guide: &str, kind: &str) -> Value {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(guide);
    let manifests = manifests(&guide).join("\n---\n");
    let objects = manifests.split("\n---\n").map(|it| serde_saphyr::from_str::<Value>(it).expect("YAML"));
    objects.into_iter().find(|it| it["kind"] == kind).expect("an object of this kind")
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().expect("seconds"))
}

/// Ten seconds for the workload, ten for the drain, the wait after a write without an answer, five lease calls.
fn longest_stop() -> Duration {
    let timing = LeaseTiming::default();
    Duration::from_secs(20) + timing.tolerated_skew() + timing.call_timeout() * 5
}

pub fn deployment_termination_grace_covers_a_stop() {
    let pod = &object("ROLLOUT.md", "Deployment")["spec"]["template"]["spec"];
    let pre_stop = seconds(&pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]);
    let needed = pre_stop + longest_stop();
    assert!(seconds(&pod["terminationGracePeriodSeconds"]) >= needed, "{needed:?}");
}

/// The election answers each probe. One failed lease call, and the next one, are over before a replica counts as
/// unready.
pub async fn deployment_probes_fit_the_election() {
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let election = Election::builder("my-namespace", "my-controller").build(&config).unwrap();
    let health = Health::new(election.candidate(), Duration::from_secs(20));
    let pod = &object("ROLLOUT.md", "Deployment")["spec"]["template"]["spec"];
    for (probe, status) in [("livenessProbe", 200), ("readinessProbe", 503)] {
        let path = pod["containers"][0][probe]["httpGet"]["path"].as_str().expect("a path");
        assert_eq!(health.answer(path).status(), status, "{probe} of an election that has not begun");
    }
    let probe = &pod["containers"][0]["readinessProbe"];
    let failures = u32::try_from(probe["failureThreshold"].as_u64().expect("a count")).unwrap();
    let patience = seconds(&probe["periodSeconds"]) * (failures - 1);
    let timing = LeaseTiming::default();
    assert!(patience > timing.call_timeout() * 2, "{patience:?}");
}

pub fn sidecar_termination_grace_covers_a_stop() {
    let pod = &object("SIDECAR.md", "Deployment")["spec"]["template"]["spec"];
    let last_answers = Duration::from_secs(5);
    let needed = longest_stop() + last_answers;
    assert!(seconds(&pod["terminationGracePeriodSeconds"]) >= needed, "{needed:?}");
}

/// Kubernetes accepts any text as arguments or as a kubeconfig, so this test parses them.
pub fn sidecar_manifest_is_consistent() {
    let deployment = object("SIDECAR.md", "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let sidecar = &pod["initContainers"][0];
    assert_eq!(sidecar["restartPolicy"], "Always", "a native sidecar");
    let option = |name: &str| {
        let mut args = sidecar["args"].as_array().expect("arguments").iter().filter_map(Value::as_str);
        args.find_map(|it| it.strip_prefix(name)).expect("an option").to_owned()
    };

    let kubeconfig = object("SIDECAR.md", "ConfigMap")["data"]["config"].as_str().expect("text").to_owned();
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).expect("YAML");
    let server = format!("http://{}", option("--listen="));
    assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], server);
    for (probe, path) in [("startupProbe", "readyz"), ("livenessProbe", "healthz")] {
        let command = sidecar[probe]["exec"]["command"].as_array().expect("a command");
        assert_eq!(*command.last().unwrap(), format!("http://{}/{path}", option("--status=")));
    }

    let role = object("SIDECAR.md", "Role");
    let lease = format!("{}/{}", role["metadata"]["namespace"].as_str().unwrap(), "my-app");
    assert_eq!(option("--lease="), lease);
    assert_eq!(role["rules"][1]["resourceNames"][0], "my-app");
}
