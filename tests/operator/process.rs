//! The operator's processes.

use crate::apiserver::Guarded;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
    time::Duration,
};
use tempfile::TempDir;

/// An orderly end takes milliseconds, on an idle machine.
const ORDERLY: Duration = Duration::from_secs(20);

/// One replica.
pub struct Replica {
    pub name: String,
    process: Guarded,
    folder: TempDir,
}

impl Replica {
    /// `name` stands in the lease.
    pub fn start(name: &str, kubeconfig: &Value, options: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kubeconfig");
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let mut command = Command::new(binary());
        command.args(options).env("POD_NAME", name).env("KUBECONFIG", file).env_remove("RUST_LOG");
        let log = File::create(folder.path().join("log")).unwrap();
        let out = Stdio::from(log.try_clone().unwrap());
        let process = Guarded::spawn_with(&command, out, Stdio::from(log)).unwrap();
        Self { name: name.to_owned(), process, folder }
    }

    /// As Kubernetes ends a pod. It must end in good order.
    pub async fn terminate(mut self) {
        assert!(self.process.is_running(), "{} has ended: {}", self.name, self.log());
        self.process.signal(Signal::TERM);
        let Some(status) = self.process.ended(ORDERLY).await else {
            panic!("{} does not end: {}", self.name, self.log())
        };
        assert!(status.success(), "{status}: {}", self.log());
    }

    pub fn kill(mut self) {
        self.process.kill();
    }

    /// All that it has printed.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// Runs it to its end, and returns what it prints.
pub async fn run(options: &[&str]) -> (ExitStatus, String) {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new(binary());
    command.args(options).env_remove("RUST_LOG");
    let out = File::create(&log).unwrap();
    let mut process = Guarded::spawn_with(&command, out.try_clone().unwrap().into(), out.into()).unwrap();
    let status = process.ended(Duration::from_secs(60)).await;
    let log = fs::read_to_string(log).unwrap();
    (status.unwrap_or_else(|| panic!("{options:?}: it goes on: {log}")), log)
}

/// JSON is YAML.
pub fn kubeconfig(server: &str, ca: &Path, token: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{ "name": "test", "cluster": { "server": server, "certificate-authority": ca } }],
        "users": [{ "name": "test", "user": { "token": token } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test", "namespace": namespace } }],
    })
}

/// Built once, with all features, as the tests mostly are.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--example", "operator", "--all-features", "--message-format=json", "--quiet"]);
        build.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        // What cargo tells a test of its package: build scripts look at it, and would run again.
        let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
            build.env_remove(name);
        }
        let output = build.stderr(Stdio::inherit()).output().expect("cargo");
        assert!(output.status.success(), "the operator does not build");
        let artifact = |line: &[u8]| {
            let message: Value = serde_json::from_slice(line).ok()?;
            let is_it = message["target"]["name"] == "operator" && message["target"]["kind"][0] == "example";
            message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
        };
        output.stdout.split(|byte| *byte == b'\n').find_map(artifact).expect("cargo names the executable")
    })
}
