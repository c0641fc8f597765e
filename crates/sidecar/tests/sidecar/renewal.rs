//! Credentials that change, and what asks for them.

use crate::{
    callers::{MAPS, Raw, get},
    process::{Sidecar, kubeconfig},
    upstream::{LEASE, Upstream},
    wait::until_some,
};
use kube_leader_gate::testing::Fault;
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;

fn version(upstream: &Upstream) -> Value {
    upstream.server.object(LEASE).unwrap()["metadata"]["resourceVersion"].clone()
}

/// Waits until a read through the sidecar is answered with this code.
async fn is_answered(sidecar: &Sidecar, code: u16) {
    until_some(&format!("the answer {code}"), async || {
        (get(sidecar.addr, MAPS).await.code == code).then_some(())
    })
    .await;
}

/// As a cloud's command line or cert-manager writes it, before the old token ends.
#[tokio::test]
async fn kubeconfig_that_is_written_anew_is_read() {
    let upstream = Upstream::start().await;
    upstream.accept("Bearer old");
    let sidecar = Sidecar::start_with(kubeconfig(&upstream.url(), "old"), "a", &["--timing", "fast"]).await;
    sidecar.leads().await;
    assert_eq!(get(sidecar.addr, MAPS).await.code, 200);
    upstream.accept("Bearer new");
    is_answered(&sidecar, 401).await;
    let before = version(&upstream);
    sidecar.rewrite(&kubeconfig(&upstream.url(), "new"));
    is_answered(&sidecar, 200).await;
    until_some("the lease is renewed", async || (version(&upstream) != before).then_some(())).await;
    assert_eq!(sidecar.leader().await["can_write"], true, "{}", sidecar.log());
}

/// A plugin that says how often it has run, whose token has always run out, and that hangs while there is a file.
fn plugin(folder: &Path, upstream: &Upstream, expires: &str) -> Value {
    let [runs, hangs] = ["runs", "hangs"].map(|name| folder.join(name).display().to_string());
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": "own", "expirationTimestamp": expires },
    });
    let script = format!("echo >> {runs}; while [ -e {hangs} ]; do sleep 0.05; done; echo '{credential}'");
    let mut kubeconfig = kubeconfig(&upstream.url(), "own");
    kubeconfig["users"][0]["user"] = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script],
    } });
    kubeconfig
}

fn runs(folder: &TempDir) -> usize {
    fs::read(folder.path().join("runs")).unwrap().len()
}

#[tokio::test]
async fn plugin_runs_once_at_the_start() {
    let (upstream, folder) = (Upstream::start().await, TempDir::new().unwrap());
    upstream.accept("Bearer own");
    let kubeconfig = plugin(folder.path(), &upstream, "2999-01-01T00:00:00Z");
    let sidecar = Sidecar::start_with(kubeconfig, "a", &[]).await;
    sidecar.leads().await;
    assert_eq!(get(sidecar.addr, MAPS).await.code, 200);
    assert_eq!(runs(&folder), 1);
}

/// What all callers share hangs in the future of none of them (rule S9).
#[tokio::test]
async fn s9_hung_plugin_runs_once_and_delays_nobody() {
    let (upstream, folder) = (Upstream::start().await, TempDir::new().unwrap());
    upstream.accept("Bearer own");
    let kubeconfig = plugin(folder.path(), &upstream, "2020-01-01T00:00:00Z");
    let sidecar = Sidecar::start_with(kubeconfig, "a", &["--timing", "fast"]).await;
    sidecar.leads().await;
    fs::write(folder.path().join("hangs"), "").unwrap();
    // One of them begins the run that hangs, and all go on with the last token.
    for _ in 0..40 {
        assert_eq!(get(sidecar.addr, MAPS).await.code, 200);
        drop(Raw::send(sidecar.addr, &format!("GET {MAPS} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await);
    }
    let (before, version_before) = (runs(&folder), version(&upstream));
    until_some("the lease is renewed", async || (version(&upstream) != version_before).then_some(())).await;
    assert_eq!(get(sidecar.addr, MAPS).await.code, 200);
    assert_eq!(runs(&folder), before, "no other run while one hangs");
    assert_eq!(sidecar.leader().await["can_write"], true);
    fs::remove_file(folder.path().join("hangs")).unwrap();
}

/// A program behind the proxy of the API server wants a password. The sidecar's own credentials are good.
#[tokio::test]
async fn backend_that_answers_401_does_not_run_the_plugin() {
    let (upstream, folder) = (Upstream::start().await, TempDir::new().unwrap());
    upstream.accept("Bearer own");
    let sidecar =
        Sidecar::start_with(plugin(folder.path(), &upstream, "2999-01-01T00:00:00Z"), "a", &[]).await;
    sidecar.leads().await;
    let _wants = upstream.server.inject(Fault::status(401).path(|it| it.contains("/proxy/")));
    // Credentials that are refused are read anew once in five seconds.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(get(sidecar.addr, "/api/v1/namespaces/default/services/a/proxy/x").await.code, 401);
        assert_eq!(runs(&folder), 1);
    }
}
