//! The operator as processes.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
    time::Duration,
};
use tempfile::TempDir;
use test_support::{apiserver::Guarded, program};

/// A stop in order takes milliseconds on an idle machine.
const ORDERLY: Duration = Duration::from_secs(20);

/// One replica.
pub struct Replica {
    pub name: String,
    process: Guarded,
    folder: TempDir,
}

impl Replica {
    /// `name` is the holder in the lease.
    pub fn start(name: &str, kubeconfig: &Value, options: &[&str]) -> Self {
        Self::start_logging(name, kubeconfig, options, "info,kube_client=off,rustls_platform_verifier=off")
    }

    /// `filter` says what it logs, in the syntax of `RUST_LOG`.
    pub fn start_logging(name: &str, kubeconfig: &Value, options: &[&str], filter: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kubeconfig");
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let mut command = Command::new(binary());
        command.args(options).env("POD_NAME", name).env("KUBECONFIG", file).env("RUST_LOG", filter);
        let log = File::create(folder.path().join("log")).unwrap();
        let out = Stdio::from(log.try_clone().unwrap());
        let process = Guarded::spawn_with(&command, out, Stdio::from(log)).unwrap();
        Self { name: name.to_owned(), process, folder }
    }

    /// Stops it as Kubernetes ends a pod, and returns its log. It must end in order.
    pub async fn terminate(mut self) -> String {
        assert!(self.process.is_running(), "{} has ended: {}", self.name, self.log());
        self.process.signal(Signal::TERM);
        let Some(status) = self.process.ended(ORDERLY).await else {
            panic!("{} does not end: {}", self.name, self.log())
        };
        assert!(status.success(), "{status}: {}", self.log());
        self.log()
    }

    pub fn kill(mut self) {
        self.process.kill();
    }

    /// All lines that it has printed.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// Runs it to its end, and returns its output.
pub async fn run(options: &[&str]) -> (ExitStatus, String) {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new(binary());
    command.args(options).env_remove("RUST_LOG");
    let out = File::create(&log).unwrap();
    let mut process = Guarded::spawn_with(&command, out.try_clone().unwrap().into(), out.into()).unwrap();
    // The demonstration takes some seconds of real time.
    let status = process.ended(Duration::from_secs(180)).await;
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

/// Built once, with all features, like most of the tests.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| program::example("operator"))
}
