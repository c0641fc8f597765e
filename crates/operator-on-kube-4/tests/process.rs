//! The whole program as processes, before the in-process API server.

use kube_leader_gate::testing::ApiServer;
use serde_json::json;
use std::{
    fs,
    path::Path,
    process::{Child, Command},
    time::Duration,
};
use test_support::wait::until;

/// Less than the lease lasts: the next leader cannot have waited for its end.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/marker";

/// Ends with the test.
struct Replica(Child);

impl Replica {
    fn start(name: &str, server: &str) -> Self {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": server } }],
            "users": [{ "name": "it", "user": { "token": name } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_marker"));
        Self(program.env("POD_NAME", name).env("KUBECONFIG", file).spawn().unwrap())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn leader_hands_over_on_sigterm() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let is_led_by = |name| server.object(LEASE).is_some_and(|it| it["spec"]["holderIdentity"] == name);
    let mut first = Replica::start("first", &endpoint.uri());
    until(PATIENCE, "the first one leads", || is_led_by("first")).await;
    let _second = Replica::start("second", &endpoint.uri());
    until(PATIENCE, "the second one follows", || server.reads("second", "watch", "leases") > 0).await;
    let told = Command::new("kill").args(["-TERM", &first.0.id().to_string()]).status().unwrap();
    assert!(told.success());
    until(PATIENCE, "the first one ends", || first.0.try_wait().unwrap().is_some()).await;
    assert!(first.0.wait().unwrap().success());
    until(PATIENCE, "the second one leads", || is_led_by("second")).await;
}
