//! The sidecar's process.

use super::{
    callers::{Answer, get},
    upstream::Upstream,
    wait::{SOON, until, within},
};
use crate::{apiserver::Guarded, program};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
};
use tempfile::TempDir;

/// As `fast`, but a busy machine does not cost the leader its term.
pub const STEADY: &str = "65/60/2";

/// A sidecar that serves.
pub struct Sidecar {
    pub process: Guarded,
    pub addr: SocketAddr,
    pub status: SocketAddr,
    folder: TempDir,
}

impl Sidecar {
    /// A follower or a leader, whichever happens. Its identity is its user's name too.
    pub async fn start(upstream: &Upstream, identity: &str, options: &[&str]) -> Self {
        Self::start_with(kubeconfig(&upstream.url(), identity), identity, options).await
    }

    pub async fn start_with(kubeconfig: Value, identity: &str, options: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kubeconfig");
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let mut command = Command::new(binary());
        for option in ["--listen", "--status"] {
            if !options.contains(&option) {
                command.args([option, "127.0.0.1:0"]);
            }
        }
        command.args(["--lease", "default/app"]);
        command.args(["--identity", identity, "--kubeconfig"]).arg(&file).args(options);
        Self::start_by(command, folder).await
    }

    /// The command says everything. The folder is for files of the sidecar.
    pub async fn start_by(mut command: Command, folder: TempDir) -> Self {
        command.env("RUST_LOG", "debug,hyper_util=info");
        let log = File::create(folder.path().join("log")).unwrap();
        let out = Stdio::from(log.try_clone().unwrap());
        let process = Guarded::spawn_with(&command, out, Stdio::from(log)).unwrap();
        let unset = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut sidecar = Self { process, addr: unset, status: unset, folder };
        until("the sidecar serves", || {
            assert!(sidecar.process.is_running(), "it has ended: {}", sidecar.log());
            sidecar.log().contains("serving on http://")
        })
        .await;
        sidecar.status = address(&sidecar.log(), "status on http://");
        sidecar.addr = address(&sidecar.log(), "serving on http://");
        sidecar
    }

    /// A sidecar that leads, at [`STEADY`].
    pub async fn leading(upstream: &Upstream, identity: &str) -> Self {
        let sidecar = Self::start(upstream, identity, &["--timing", STEADY]).await;
        sidecar.leads().await;
        sidecar
    }

    /// A sidecar that follows an outsider.
    pub async fn following(upstream: &Upstream, identity: &str, options: &[&str]) -> Self {
        upstream.held_by("outsider");
        let sidecar = Self::start(upstream, identity, options).await;
        sidecar.sees("outsider").await;
        sidecar
    }

    pub async fn leads(&self) {
        self.says("it leads", |leader| leader["is_leader"] == true).await;
    }

    pub async fn sees(&self, holder: &str) {
        self.says("it has seen the holder", |leader| leader["holder"] == holder).await;
    }

    async fn says(&self, what: &str, says: impl Fn(&Value) -> bool) {
        within(SOON, what, async {
            while !says(&self.leader().await) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Where it serves its metrics, if it was told to.
    pub fn metrics(&self) -> SocketAddr {
        let log = self.log();
        let line = log.lines().find_map(|line| line.strip_prefix("metrics on http://")).expect("the line");
        line.strip_suffix("/metrics").expect("the path").parse().expect("an address")
    }

    /// The answer of `/leader`.
    pub async fn leader(&self) -> Value {
        get(self.status, "/leader").await.json()
    }

    pub async fn probe(&self, path: &str) -> Answer {
        get(self.status, path).await
    }

    /// Writes its kubeconfig anew.
    pub fn rewrite(&self, kubeconfig: &Value) {
        fs::write(self.folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
    }

    /// Its whole output.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// Runs a sidecar that is expected to end by itself. Returns its status and its error output.
pub async fn run(options: &[&str]) -> (ExitStatus, String) {
    let mut command = Command::new(binary());
    command.args(options);
    run_by(&command).await
}

/// The same with this command.
pub async fn run_by(command: &Command) -> (ExitStatus, String) {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let mut process =
        Guarded::spawn_with(command, Stdio::null(), File::create(&log).unwrap().into()).unwrap();
    let status = process.ended(SOON).await;
    let log = fs::read_to_string(log).unwrap();
    (status.unwrap_or_else(|| panic!("{command:?}: it goes on: {log}")), log)
}

/// JSON is YAML too.
pub fn kubeconfig(server: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "users": [{ "name": "u", "user": { "token": token } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
    })
}

fn address(log: &str, label: &str) -> SocketAddr {
    let line = log.lines().find_map(|line| line.strip_prefix(label)).expect("the line is there");
    line.parse().expect("an address")
}

/// Built once. Building does nothing if it was built with the tests.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| program::binary("kube-leader-gate-sidecar"))
}
