//! The manifests in the documents: a real server accepts them, and their times fit.

use crate::apiserver::{self, Cluster};
use kube_leader_gate::LeaseTiming;
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

pub async fn a_real_server_accepts_each_manifest_of_the_documents() {
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

/// Five seconds of preStop, ten for the workload, ten for the drain, five lease calls.
pub fn the_termination_grace_of_the_deployment_fits_a_stop() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ROLLOUT.md");
    let deployment =
        manifests(&guide).into_iter().find(|it| it.contains("kind: Deployment")).expect("a Deployment");
    let deployment: Value = serde_saphyr::from_str(&deployment).expect("YAML");
    let pod = &deployment["spec"]["template"]["spec"];
    let seconds = |value: &Value| Duration::from_secs(value.as_u64().expect("seconds"));
    let pre_stop = seconds(&pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]);
    let (workload, drain) = (Duration::from_secs(10), Duration::from_secs(10));
    let needed = pre_stop + workload + drain + LeaseTiming::default().call_timeout() * 5;
    assert!(seconds(&pod["terminationGracePeriodSeconds"]) >= needed, "{needed:?}");
}
