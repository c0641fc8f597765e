//! A candidate with kube-lease-manager's channel: its work runs while the channel says that it has the lock.

use common::{Arguments, Failure, Stop};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kube_lease_manager::LeaseManagerBuilder;
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let stop = Stop::on_sigterm()?;
    let client = Client::try_default().await?;
    let objects = Api::<ConfigMap>::namespaced(client.clone(), &arguments.namespace);
    // A renewal each retry period. It knows no renew deadline.
    let manager = LeaseManagerBuilder::new(client, &arguments.name)
        .with_namespace(&arguments.namespace)
        .with_identity(&arguments.identity)
        .with_field_manager(&arguments.identity)
        .with_duration(common::LEASE_DURATION)
        .with_grace(common::LEASE_DURATION - common::RETRY_PERIOD)
        .build()
        .await?;
    let (mut leads, task) = manager.watch().await;
    let write = async |patch: String| {
        let patch: Value = serde_json::from_str(&patch).unwrap_or_default();
        objects.patch(&arguments.name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    };
    let lead = async {
        loop {
            tokio::select! {
                () = stop.received() => return,
                leads = leads.wait_for(|leads| *leads) => {
                    if leads.is_err() {
                        return; // its task has ended with an error, and the process ends with it
                    }
                }
            }
            tokio::select! {
                _ = leads.wait_for(|leads| !*leads) => {}
                () = arguments.work(stop.received(), &write) => return,
            }
        }
    };
    lead.await;
    // Without a receiver the task gives the lease up.
    drop(leads);
    task.await??;
    Ok(())
}
