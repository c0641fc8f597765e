//! A real kube-apiserver on loopback, for your own trials. The tests use the same one. `make cluster` runs it.
//!
//! It has no nodes, so no Pod ever runs. It serves everything else that an operator needs. Ctrl-C ends it and deletes
//! its data.

use std::{error::Error, io};
use test_support::apiserver::{Cluster, assets, is_there};
use tokio::signal::ctrl_c;

/// Users that may do anything.
const REPLICAS: [&str; 3] = ["candidate-0", "candidate-1", "candidate-2"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    is_there()?;
    let assets = assets();
    let cluster = Cluster::start(assets).await;
    let kubeconfig = cluster.kubeconfig("admin", &cluster.url());
    let kubectl = assets.binary("kubectl");
    println!("A kube-apiserver runs at {}. In another terminal:\n", cluster.url());
    println!("  export KUBECONFIG={}", kubeconfig.display());
    println!("  alias kubectl={}", kubectl.display());
    println!("  kubectl get namespaces\n");
    println!("The audit log has one line of JSON for each request: {}", cluster.audit_log().display());
    println!("To tell replicas apart in it, give each a user of its own:\n");
    for user in REPLICAS {
        println!("  export KUBECONFIG={}", cluster.kubeconfig(user, &cluster.url()).display());
    }
    println!("\nThe token of a user stands in its file.");
    println!("Ctrl-C ends it.");
    ctrl_c()
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("no Ctrl-C to wait for: {error}")))?;
    Ok(())
}
