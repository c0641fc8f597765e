//! The drills of `docs/PRODUCTION.md`: kubectl understands their commands, and a real API server takes what they ask
//! for. It has no kubelet and no controllers, so each test looks at what the commands leave behind.

use crate::apiserver::{self, Cluster};
use serde_json::{Value, json};
use std::{
    env,
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
};

const GUIDE: &str = include_str!("../../docs/PRODUCTION.md");
const LEADER: &str = "my-controller-0";

/// The commands of this item.
fn commands(item: u32) -> &'static str {
    let (_, rest) = GUIDE.split_once(&format!("\n**{item}. ")).expect("the item");
    let (item, _) = rest.split_once("\n**").expect("a next item");
    let (_, commands) = item.split_once("\n```sh\n").expect("its commands");
    commands.split_once("```").expect("their end").0
}

/// A cluster as after the deployment of the guide, with one pod.
struct Scene {
    cluster: &'static Cluster,
    namespace: String,
    node: String,
    /// A folder with a program `kubectl` that reaches the cluster.
    programs: PathBuf,
}

impl Scene {
    async fn new() -> Self {
        let cluster = apiserver::shared().await;
        let namespace = cluster.namespace().await;
        let programs = cluster.folder().join(format!("{namespace}-programs"));
        fs::create_dir(&programs).expect("a folder");
        let kubectl = cluster.kubectl("admin");
        let mut script = format!("#!/bin/sh\nexec '{}'", kubectl.get_program().display());
        for argument in kubectl.get_args() {
            write!(script, " '{}'", argument.display()).expect("a string takes any text");
        }
        let program = programs.join("kubectl");
        fs::write(&program, script + " \"$@\"\n").expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        let scene = Self { cluster, node: format!("{namespace}-node"), namespace, programs };
        scene.create(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": scene.node } }));
        let containers = json!([{ "name": "controller", "image": "registry.example/my-controller:1" }]);
        scene.create(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": LEADER },
            "spec": { "nodeName": scene.node, "containers": containers },
        }));
        let labels = json!({ "app": "my-controller" });
        scene.create(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "my-controller" },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
            },
        }));
        scene.create(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "my-controller" },
            "spec": { "holderIdentity": LEADER },
        }));
        scene
    }

    fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut kubectl = self.cluster.kubectl("admin");
        kubectl.args(arguments).args(["-n", &self.namespace]);
        kubectl
    }

    fn create(&self, object: &Value) {
        let mut kubectl = self.kubectl(&["create", "-f", "-"]);
        let mut kubectl = kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("kubectl");
        kubectl.stdin.take().unwrap().write_all(object.to_string().as_bytes()).expect("it reads");
        assert!(kubectl.wait().expect("its end").success(), "{object}");
    }

    /// What `kubectl get` prints.
    fn get(&self, arguments: &[&str]) -> Value {
        let output = self.kubectl(&["get", "-o", "json"]).args(arguments).output().expect("kubectl runs");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// A shell that runs these commands of the guide, in this scene's namespace.
    fn shell(&self, commands: &str) -> Command {
        let path = env::join_paths(
            [self.programs.clone()]
                .into_iter()
                .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
        );
        let mut shell = Command::new("sh");
        shell.args(["-euc", &commands.replace("my-namespace", &self.namespace)]);
        shell.env("PATH", path.expect("a path")).env("HOME", self.cluster.folder()).env_remove("KUBECONFIG");
        shell
    }

    /// Returns whether the last of these commands succeeded.
    fn run(&self, commands: &str) -> bool {
        self.shell(commands).status().expect("a shell").success()
    }

    fn service_account(&self) -> Value {
        self.get(&["deployment", "my-controller"])["spec"]["template"]["spec"]["serviceAccountName"].clone()
    }

    /// The pods that run something on the node itself, with their command lines.
    fn commands_on_the_node(&self) -> Vec<String> {
        let pods = self.get(&[
            "pods",
            "--all-namespaces",
            "--field-selector",
            &format!("spec.nodeName={}", self.node),
        ]);
        let pods = pods["items"].as_array().expect("pods").iter();
        let debuggers = pods.filter(|pod| pod["spec"]["hostPID"] == true).map(|pod| {
            let container = &pod["spec"]["containers"][0];
            assert_eq!(container["securityContext"]["privileged"], true, "{pod}");
            assert_eq!(container["volumeMounts"][0]["mountPath"], "/host", "{pod}");
            let words =
                ["command", "args"].into_iter().filter_map(|part| container[part].as_array()).flatten();
            words.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        });
        debuggers.collect()
    }
}

pub async fn commands_of_the_checklist_do_what_it_says() {
    let scene = Scene::new().await;

    let rollout: Vec<_> = commands(10).lines().collect();
    let [without_role, status, with_role] = rollout[..] else { panic!("three commands: {rollout:?}") };
    assert!(scene.run(without_role));
    assert_eq!(scene.service_account(), "default");
    assert!(!scene.run(&status.replace("--timeout 2m", "--timeout 1s")), "no replica becomes ready");
    assert!(scene.run(with_role));
    assert_eq!(scene.service_account(), "my-controller");

    assert_eq!(scene.commands_on_the_node(), Vec::<String>::new());
    assert!(scene.run(&[commands(12), commands(13)].concat()));
    let mut on_the_node = scene.commands_on_the_node();
    on_the_node.sort();
    let [kill, kill_without_kubelet] = &on_the_node[..] else { panic!("two pods: {on_the_node:?}") };
    assert_eq!(kill, "chroot /host pkill -KILL -x my-controller");
    assert!(
        kill_without_kubelet
            .starts_with("chroot /host sh -c systemctl stop kubelet; pkill -KILL -x my-controller; ")
    );
    assert!(kill_without_kubelet.ends_with("; systemctl start kubelet"));

    let stop = commands(11);
    assert!(stop.ends_with(" --watch\n"), "it shows the new holder: {stop}");
    assert_eq!(scene.get(&["pod", LEADER])["metadata"]["deletionTimestamp"], Value::Null);
    assert!(scene.run(&stop.replace(" --watch", "")));
    assert!(scene.get(&["pod", LEADER])["metadata"]["deletionTimestamp"].is_string());

    let (_, budget) = GUIDE.split_once("**14. ").and_then(|it| it.1.split_once('`')).expect("a command");
    let (budget, _) = budget.split_once('`').expect("its end");
    scene.create(&json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "my-controller" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "my-controller" } } },
    }));
    // As the controller of budgets does.
    let status = json!({ "status": { "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 3,
                                     "desiredHealthy": 2, "expectedPods": 3 } });
    let mut patch = scene.kubectl(&["patch", "poddisruptionbudget", "my-controller", "--subresource=status"]);
    patch.args(["--type=merge", "--patch", &status.to_string()]);
    assert!(patch.stdout(Stdio::null()).status().expect("kubectl runs").success());
    let shown = scene.shell(budget).output().expect("a shell").stdout;
    let shown = String::from_utf8(shown).expect("text");
    let [titles, cells] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
    let column = titles.find("ALLOWED DISRUPTIONS").expect("the column");
    assert_eq!(cells[column..].split_whitespace().next(), Some("1"), "{shown}");
}
