//! A small controller in gated mode: every replica keeps its cache warm, and only the leader writes. SIGTERM stops it
//! in order.
//!
//! `cargo run --example gated`, with a kubeconfig. It keeps one `ConfigMap` in the default namespace up to date.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client, Config,
    api::{Patch, PatchParams},
};
use kube_leader_gate::{Candidate, Election, ErrNotLeader};
use serde_json::json;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let config = Config::infer().await?;
    let election = Election::builder(&config.default_namespace, "gated-example").build(&config)?;
    let client = election.client(&config)?;
    let candidate = election.candidate();

    // The workload ends on a signal; then the gate closes, its last writes finish, and the lease is released.
    let workload = async {
        tokio::select! {
            outcome = reconcile(client, candidate) => outcome,
            signal = shutdown() => signal.map_err(Into::into),
        }
    };
    election.run(workload).await?.output
}

async fn reconcile(client: Client, candidate: Candidate) -> Result<(), Box<dyn std::error::Error>> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let wanted = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "gated-example" },
        "data": { "writer": candidate.identity().as_str() },
    });
    loop {
        let apply = PatchParams::apply("gated-example").force();
        match maps.patch("gated-example", &apply, &Patch::Apply(&wanted)).await {
            Ok(_) => tokio::time::sleep(Duration::from_secs(10)).await,
            // A follower waits until it leads: no retries, no error in the log.
            Err(error) if ErrNotLeader::find(&error).is_some() => {
                candidate.elected().await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kubernetes sends SIGTERM and waits for the pod's termination grace period. Ctrl-C is for a terminal.
async fn shutdown() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            interrupt = tokio::signal::ctrl_c() => interrupt,
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
