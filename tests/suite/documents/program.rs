//! The whole programs of the documents, as processes.
#![cfg(unix)]

use crate::support::releases;
use kube_leader_gate::testing::{ApiServer, Endpoint, Fault};
use rustix::process::Signal;
use serde_json::json;
use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use test_support::{apiserver::Guarded, program::example, wait::until};

const PATIENCE: Duration = Duration::from_secs(60);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

struct Program {
    process: Guarded,
    log: PathBuf,
}

impl Program {
    fn start(binary: &Path, folder: &Path, name: &str, server: &str, options: &[&str]) -> Self {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": server } }],
            "users": [{ "name": "it", "user": { "token": name } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        let (file, log) = (folder.join(name), folder.join(format!("{name}.log")));
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let mut command = Command::new(binary);
        command
            .args(options)
            .env("KUBECONFIG", file)
            .env("POD_NAME", name)
            .env("PORT", "0")
            .env_remove("RUST_LOG");
        let out = File::create(&log).unwrap();
        let process =
            Guarded::spawn_with(&command, Stdio::from(out.try_clone().unwrap()), Stdio::from(out)).unwrap();
        Self { process, log }
    }

    fn says(&self, what: &str) -> bool {
        fs::read_to_string(&self.log).unwrap().contains(what)
    }

    /// What its web server answers. It has said where that listens.
    fn page(&self, path: &str) -> String {
        let log = fs::read_to_string(&self.log).unwrap();
        let (_, said) = log.split_once("probes and metrics: ").expect("it serves");
        let address: SocketAddr = said.lines().next().unwrap().parse().unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    async fn will_say(&self, what: &str) {
        until(PATIENCE, &format!("{what} in {}", self.log.display()), || self.says(what)).await;
    }
}

/// Programs of one kind before one server.
struct Stage {
    server: ApiServer,
    endpoint: Endpoint,
    binary: PathBuf,
    folder: TempDir,
}

impl Stage {
    async fn new(program: &str) -> Self {
        let server = ApiServer::new();
        let endpoint = server.serve().await.unwrap();
        Self { server, endpoint, binary: example(program), folder: TempDir::new().unwrap() }
    }

    fn start(&self, name: &str, options: &[&str]) -> Program {
        Program::start(&self.binary, self.folder.path(), name, &self.endpoint.uri(), options)
    }

    fn put_guest(&self, name: &str) {
        let guest = json!({ "metadata": { "labels": { "greet": "yes" } } });
        self.server.put("admin", &format!("{MAPS}/{name}"), guest).unwrap();
    }

    /// Who has written objects of this kind, in order.
    fn writers(&self, resource: &str) -> Vec<String> {
        let mut writes = self.server.write_log();
        writes.retain(|it| it.resource == resource && it.user != "admin" && it.took_effect());
        writes.into_iter().map(|it| it.user).collect()
    }

    /// Waits until this one has written both config maps.
    async fn greeted_and_archived_by(&self, user: &str) {
        let has_written = |name: &str| {
            self.server.write_log().iter().any(|it| {
                it.user == user
                    && it.took_effect()
                    && it.resource == "configmaps"
                    && it.name.as_deref() == Some(name)
            })
        };
        until(PATIENCE, &format!("{user} greets and archives"), || {
            has_written("ada") && has_written("copy-of-ada")
        })
        .await;
    }

    /// Waits until this one holds the lease.
    async fn led_by(&self, name: &str) {
        let holder = || Some(self.server.objects(LEASES).first()?["spec"]["holderIdentity"].clone());
        until(PATIENCE, &format!("{name} leads"), || holder().is_some_and(|it| it == name)).await;
    }

    /// Ends it as Kubernetes ends a pod. It must have released the lease, so that the others need not wait.
    async fn stop(&self, mut program: Program, name: &str) {
        program.process.signal(Signal::TERM);
        let status = program.process.ended(PATIENCE).await;
        assert!(status.is_some_and(|it| it.success()), "{status:?}: {}", program.log.display());
        assert_eq!(releases(&self.server, name).len(), 1, "{name} has released the lease");
    }
}

#[tokio::test]
async fn program_of_readme_greets_and_hands_over() {
    let stage = Stage::new("minimal").await;
    stage.server.put("admin", "/api/v1/namespaces/blue", json!({})).unwrap();
    let first = stage.start("first", &[]);
    first.will_say("greeted blue").await;
    let second = stage.start("second", &[]);
    second.will_say("the lease has changed hands").await;
    assert!(!second.says("greeted"), "it follows");
    stage.stop(first, "first").await;
    second.will_say("greeted blue").await;
    assert!(!second.says("ERROR"), "a follower's rejected write is no error");
    let mut writers = stage.writers("configmaps");
    writers.dedup(); // the gain and the first list may each bring the namespace
    assert_eq!(writers, ["first", "second"], "each as the leader");
}

/// Its lease lasts for longer than the test waits, so the second one cannot have waited for its end.
#[tokio::test]
async fn leading_only_program_of_guide_hands_over() {
    let stage = Stage::new("leading_only").await;
    let first = stage.start("first", &[]);
    stage.led_by("first").await;
    let second = stage.start("second", &[]);
    let watches = |name| move |stage: &Stage| stage.server.reads(name, "watch", "configmaps") > 0;
    until(PATIENCE, "the leader works", || watches("first")(&stage)).await;
    until(PATIENCE, "the second one follows", || stage.server.reads("second", "watch", "leases") > 0).await;
    assert!(!watches("second")(&stage), "a follower does no work");
    stage.stop(first, "first").await;
    stage.led_by("second").await;
    until(PATIENCE, "the second one works", || watches("second")(&stage)).await;
    drop(second);
}

/// The Rust in the blocks of a page.
fn rust(page: &str) -> String {
    let blocks = page.split("\n```rust").skip(1);
    blocks.map(|block| block.split_once("\n```").expect("an end").0).collect()
}

/// Without `.metrics()`, a scrape is empty and no alert can fire.
#[test]
fn page_of_metrics_shows_the_recorder_of_mixed() {
    let (page, program) =
        (include_str!("../../../docs/METRICS.md"), include_str!("../../../examples/mixed.rs"));
    let begin = program.find("fn recorder()").unwrap();
    let end = begin + program[begin..].find("\n}\n").unwrap();
    assert!(
        page.contains(&program[begin..end]),
        "docs/METRICS.md has another recorder() than examples/mixed.rs"
    );
    for (name, code) in [("docs/METRICS.md", &*rust(page)), ("examples/mixed.rs", program)] {
        let (before, builder) = code.split_once("Election::builder(").expect("it builds an election");
        assert!(before.contains("let metrics = recorder()?;"), "{name}: the recorder comes first");
        let (statement, _) = builder.split_once(';').expect("an end");
        assert!(statement.contains(".metrics()"), "{name}: the builder turns the metrics on");
    }
    let check = "curl POD:8080/metrics | grep '^leader_election_master_status'";
    for step in ["`Election::builder(..).metrics()`", check] {
        assert!(page.contains(step), "docs/METRICS.md has no step {step}");
    }
}

#[tokio::test]
async fn mixed_program_shares_one_election() {
    let stage = Stage::new("mixed").await;
    stage.put_guest("ada");
    let fault = stage.server.inject(Fault::forbidden().resource("configmaps").verb("list"));
    let first = stage.start("first", &[]);
    first.will_say("the cache is not filled yet").await;
    until(PATIENCE, "it is not ready", || first.page("/readyz").contains("the cache is not filled yet"))
        .await;
    assert!(stage.writers("leases").is_empty(), "it does not contend");
    drop(fault);
    first.will_say("has the certificate").await;
    let second = stage.start("second", &[]);
    second.will_say("has the certificate").await;
    stage.greeted_and_archived_by("first").await;
    for (program, master) in [(&first, 1), (&second, 0)] {
        let master =
            format!(r#"leader_election_master_status{{name="mixed",lease_namespace="default"}} {master}"#);
        until(PATIENCE, "the metrics say who leads", || program.page("/metrics").contains(&master)).await;
        let is_ready = || program.page("/readyz").starts_with("HTTP/1.0 200");
        until(PATIENCE, "it is ready once it has seen the lease and its objects", is_ready).await;
    }
    assert!(!stage.writers("configmaps").contains(&"second".to_owned()), "it follows");
    stage.stop(first, "first").await;
    stage.greeted_and_archived_by("second").await;
    assert_eq!(stage.writers("secrets"), ["first"], "the certificate stays");
    stage.stop(second, "second").await;
}

#[tokio::test]
async fn mixed_program_alone_needs_no_lease() {
    let stage = Stage::new("mixed").await;
    stage.put_guest("ada");
    let mut only = stage.start("only", &["--leader-elect=false"]);
    only.will_say("has the certificate").await;
    stage.greeted_and_archived_by("only").await;
    only.process.signal(Signal::TERM);
    assert!(only.process.ended(PATIENCE).await.is_some_and(|it| it.success()));
    let leases = stage.server.write_log().iter().filter(|it| it.resource == "leases").count();
    assert_eq!(leases as u64 + stage.server.reads("only", "get", "leases"), 0);
}
