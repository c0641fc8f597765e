//! kubectl through the sidecar, before a real kube-apiserver.

use crate::support::PATIENCE;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Command, Output, Stdio},
};
use test_support::{
    apiserver::{Cluster, Guarded, assets, program},
    sidecar::process::{self, Sidecar},
    wait::{until, within},
};
use tokio::task::{JoinHandle, spawn_blocking};

const POD: [&str; 2] = ["operator", "app"];

struct Scene {
    cluster: Cluster,
    leader: Sidecar,
    follower: Sidecar,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Cluster::start(assets()).await;
        let timing = ["--timing", "15/10/0.8"];
        let leader = sidecar(&cluster, "candidate-0", &timing).await;
        leader.leads().await;
        let follower = sidecar(&cluster, "candidate-1", &timing).await;
        follower.sees("candidate-0").await;
        Self { cluster, leader, follower }
    }

    /// kubectl, with only the sidecar's address.
    fn kubectl(&self, sidecar: SocketAddr, arguments: &[&str]) -> Command {
        let mut kubectl = Command::new(self.cluster.kubectl("candidate-0").get_program());
        kubectl.env("HOME", self.cluster.folder()).env("KUBECONFIG", "/dev/null");
        kubectl.arg(format!("--server=http://{sidecar}")).args(arguments);
        kubectl
    }

    async fn run(&self, sidecar: SocketAddr, arguments: &[&str], stdin: Option<&Value>) -> Output {
        let mut kubectl = self.kubectl(sidecar, arguments);
        let stdin = stdin.map(ToString::to_string);
        let run = spawn_blocking(move || {
            kubectl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = kubectl.spawn().expect("kubectl");
            child
                .stdin
                .take()
                .expect("a pipe")
                .write_all(stdin.unwrap_or_default().as_bytes())
                .expect("it reads");
            child.wait_with_output().expect("its output")
        });
        within(PATIENCE, "kubectl ends", run).await.unwrap()
    }

    /// What kubectl prints when it succeeds.
    async fn does(&self, sidecar: SocketAddr, arguments: &[&str], stdin: Option<&Value>) -> String {
        let output = self.run(sidecar, arguments, stdin).await;
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What kubectl prints when it fails.
    async fn fails(&self, sidecar: SocketAddr, arguments: &[&str], stdin: Option<&Value>) -> String {
        let output = self.run(sidecar, arguments, stdin).await;
        assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Starts kubectl and returns its first line that begins with `begins`, while it goes on.
    async fn streams(
        &self,
        sidecar: SocketAddr,
        arguments: &[&str],
        begins: &'static str,
    ) -> (Guarded, String) {
        let (mut process, first) = started(&self.kubectl(sidecar, arguments), begins);
        let line = within(PATIENCE, "a line", first).await.unwrap();
        assert!(process.is_running(), "it goes on");
        (process, line)
    }
}

/// Starts a program. Its first line that begins with `begins` comes later.
fn started(program: &Command, begins: &'static str) -> (Guarded, JoinHandle<String>) {
    let mut process = Guarded::spawn_with(program, Stdio::piped(), Stdio::inherit()).expect("a program");
    let lines = BufReader::new(process.stdout().expect("a pipe")).lines();
    let first = spawn_blocking(move || {
        lines.map_while(Result::ok).find(|line| line.starts_with(begins)).expect("such a line")
    });
    (process, first)
}

/// A sidecar in front of this server, with the kubeconfig of a user.
pub async fn sidecar(cluster: &Cluster, user: &str, options: &[&str]) -> Sidecar {
    let kubeconfig = fs::read_to_string(cluster.kubeconfig(user, &cluster.url())).expect("a kubeconfig");
    Sidecar::start_with(serde_json::from_str(&kubeconfig).expect("JSON"), user, options).await
}

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "key": "value" } })
}

/// A node with our own stand-in for a kubelet, and a pod on it.
async fn pod(scene: &Scene) -> Guarded {
    let errors = File::create(scene.cluster.folder().join("kubelet.log")).expect("a file");
    let kubelet = Command::new(program("kubelet"));
    let mut kubelet = Guarded::spawn_with(&kubelet, Stdio::piped(), errors.into()).expect("the kubelet");
    let mut line = String::new();
    BufReader::new(kubelet.stdout().expect("a pipe")).read_line(&mut line).expect("its port");
    let port = serde_json::from_str::<Value>(&line).expect("JSON")["port"].clone();
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node" },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
        },
    });
    let [name, container] = POD;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "nodeName": "node", "containers": [{ "name": container, "image": "none" }] },
    });
    for object in [node, pod] {
        scene.does(scene.leader.addr, &["create", "--validate=false", "-f", "-"], Some(&object)).await;
    }
    kubelet
}

pub async fn kubectl_through_leader_reads_and_writes() {
    let scene = Scene::new().await;
    let leader = scene.leader.addr;
    assert_eq!(scene.does(leader, &["apply", "-f", "-"], Some(&map("x"))).await, "configmap/x created\n");
    assert_eq!(
        scene.does(leader, &["get", "configmap", "x", "-o", "jsonpath={.data.key}"], None).await,
        "value"
    );
    assert_eq!(
        scene.does(leader, &["delete", "configmap", "x"], None).await,
        "configmap \"x\" deleted from default namespace\n"
    );
    let _kubelet = pod(&scene).await;
    let [pod, _] = POD;
    assert_eq!(scene.does(leader, &["exec", pod, "--", "echo", "hi"], None).await, "hi\n");
    let (_logs, line) = scene.streams(leader, &["logs", "-f", pod], "").await;
    assert!(!line.is_empty());
}

pub async fn kubectl_through_follower_reads_and_names_leader() {
    let scene = Scene::new().await;
    let (leader, follower) = (scene.leader.addr, scene.follower.addr);
    scene.does(leader, &["apply", "-f", "-"], Some(&map("x"))).await;
    assert_eq!(scene.does(follower, &["get", "configmap", "x", "-o", "name"], None).await, "configmap/x\n");
    let refused = "write attempt rejected as client is not leader";
    let told = [
        (
            scene.fails(follower, &["apply", "--server-side", "-f", "-"], Some(&map("y"))).await,
            "patch configmaps \"y\"",
        ),
        (scene.fails(follower, &["create", "-f", "-"], Some(&map("y"))).await, "create configmaps"),
        (scene.fails(follower, &["delete", "configmap", "x"], None).await, "delete configmaps \"x\""),
    ];
    for (said, what) in told {
        assert!(said.contains(refused) && said.contains(what) && said.contains("\"candidate-0\""), "{said}");
        assert!(said.contains("Error from server (NotLeader): "), "{said}");
    }
    assert_eq!(
        scene.does(leader, &["get", "configmap", "x", "-o", "name"], None).await,
        "configmap/x\n",
        "it is there"
    );

    let watch = ["get", "configmaps", "--watch", "--output-watch-events", "--no-headers"];
    let watched = async {
        let (_watch, line) = scene.streams(follower, &watch, "MODIFIED").await;
        assert!(line.contains(" x "), "{line}");
    };
    let writes = async {
        // Repeated, because the watch does not see a change from before its start.
        for value in 0.. {
            let label = format!("value={value}");
            scene.does(leader, &["label", "--overwrite", "configmap", "x", &label], None).await;
        }
    };
    tokio::select! {
        () = watched => {}
        () = writes => unreachable!("it goes on"),
    }

    let _kubelet = pod(&scene).await;
    let [pod, _] = POD;
    let said = scene.fails(follower, &["exec", pod, "--", "echo", "hi"], None).await;
    assert!(said.contains(refused), "{said}");
    let (_logs, line) = scene.streams(follower, &["logs", "-f", pod], "").await;
    assert!(!line.is_empty());
}

pub async fn kubectl_shows_plain_message_for_cut_off_write() {
    let scene = Scene::new().await;
    let leader = scene.leader.addr;
    scene.cluster.freeze();
    let said = scene
        .fails(
            leader,
            &["create", "--raw", "/api/v1/namespaces/default/configmaps", "-f", "-"],
            Some(&map("y")),
        )
        .await;
    assert!(said.contains("its outcome is unknown"), "{said}");
    scene.cluster.thaw();
    until(PATIENCE, "the sidecar has lost its term", || scene.leader.log().contains("leadership lost")).await;
}

/// Its decision was a follower's, and the leader has written since. So it must not land when the follower leads. The test of
/// the sidecar for kube's client, with client-go.
pub async fn client_go_does_not_repeat_a_refused_write_after_the_gain() {
    let mut scene = Scene::new().await;
    let (leader, follower) = (scene.leader.addr, scene.follower.addr);
    scene.does(leader, &["apply", "-f", "-"], Some(&map("x"))).await;
    let kubeconfig = scene.cluster.folder().join("follower.kubeconfig");
    fs::write(&kubeconfig, process::kubeconfig(&format!("http://{follower}"), "none").to_string())
        .expect("a file");
    let mut client_go = Command::new(program("candidate"));
    client_go.args(["--lease", "default/x", "--identity", "x", "--patch", r#"{"data":{"key":"old"}}"#]);
    client_go.arg("--kubeconfig").arg(kubeconfig);
    let (_client_go, patched) = started(&client_go, "{");
    let refused = "kube_leader_gate_sidecar::proxy: write attempt rejected";
    until(PATIENCE, "the gate has rejected it", || scene.follower.log().contains(refused)).await;
    let new = ["patch", "configmap", "x", "--type=merge", "--patch", r#"{"data":{"key":"new"}}"#];
    scene.does(leader, &new, None).await;
    scene.leader.process.signal(Signal::TERM);
    scene.follower.leads().await;
    let patched = within(PATIENCE, "the call ends", patched).await.unwrap();
    let value = ["get", "configmap", "x", "-o", "jsonpath={.data.key}"];
    assert_eq!(scene.does(follower, &value, None).await, "new");
    assert!(patched.contains(r#""reason":"NotLeader""#), "{patched}");
    assert_eq!(scene.follower.log().matches(refused).count(), 1, "it was sent once");
}
