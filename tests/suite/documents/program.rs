//! The README's program as processes.
#![cfg(unix)]

use kube_leader_gate::testing::ApiServer;
use rustix::process::Signal;
use serde_json::json;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use test_support::{apiserver::Guarded, program::example, wait::until};

const PATIENCE: Duration = Duration::from_secs(60);

struct Program {
    process: Guarded,
    log: PathBuf,
}

impl Program {
    fn start(binary: &Path, folder: &Path, name: &str, server: &str) -> Self {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": server } }],
            "users": [{ "name": "it", "user": { "token": name } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        let (file, log) = (folder.join(name), folder.join(format!("{name}.log")));
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let mut command = Command::new(binary);
        command.env("KUBECONFIG", file).env("POD_NAME", name).env("PORT", "0").env_remove("RUST_LOG");
        let out = File::create(&log).unwrap();
        let process =
            Guarded::spawn_with(&command, Stdio::from(out.try_clone().unwrap()), Stdio::from(out)).unwrap();
        Self { process, log }
    }

    fn says(&self, what: &str) -> bool {
        fs::read_to_string(&self.log).unwrap().contains(what)
    }

    async fn will_say(&self, what: &str) {
        until(PATIENCE, &format!("{what} in {}", self.log.display()), || self.says(what)).await;
    }
}

#[tokio::test]
async fn program_of_readme_greets_and_hands_over() {
    let server = ApiServer::new();
    server.put("admin", "/api/v1/namespaces/blue", json!({})).unwrap();
    let endpoint = server.serve().await.unwrap();
    let (binary, folder) = (example("minimal"), TempDir::new().unwrap());
    let start = |name| Program::start(&binary, folder.path(), name, &endpoint.uri());
    let mut first = start("first");
    first.will_say("greeted blue").await;
    let second = start("second");
    second.will_say("the lease has changed hands").await;
    assert!(!second.says("greeted"), "it follows");
    first.process.signal(Signal::TERM);
    assert!(first.process.ended(PATIENCE).await.is_some_and(|status| status.success()), "it ends in order");
    second.will_say("greeted blue").await;
    assert!(!second.says("ERROR"), "a follower's rejected write is no error");
    let writes = server.write_log();
    let greeted: Vec<_> = writes
        .iter()
        .filter(|it| it.resource == "configmaps" && it.took_effect())
        .map(|it| &*it.user)
        .collect();
    assert_eq!(greeted, ["first", "second"], "each as the leader, once");
}
