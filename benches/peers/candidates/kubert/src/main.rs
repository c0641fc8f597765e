//! A candidate with kubert's `LeaseManager`: its work runs while the claim is its own and current.

use common::{Arguments, Failure, Stop};
use k8s_openapi::api::{
    coordination::v1::{Lease, LeaseSpec},
    core::v1::ConfigMap,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use kubert::lease::{ClaimParams, LeaseManager};
use serde_json::Value;
use std::time::Duration;

/// A renewal each retry period. kubert knows no renew deadline: its leader has until the end of the lease to renew.
const CLAIM: ClaimParams = ClaimParams {
    lease_duration: Duration::from_secs(common::LEASE_DURATION),
    renew_grace_period: Duration::from_secs(common::LEASE_DURATION - common::RETRY_PERIOD),
};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let stop = Stop::on_sigterm()?;
    let client = Client::try_default().await?;
    let leases = Api::<Lease>::namespaced(client.clone(), &arguments.namespace);
    let objects = Api::<ConfigMap>::namespaced(client, &arguments.namespace);
    create(&leases, &arguments.name).await?;
    let manager = LeaseManager::init(leases, &arguments.name).await?;
    let manager = manager.with_field_manager(arguments.identity.clone());
    let (mut claims, task) = manager.spawn(&arguments.identity, CLAIM).await?;
    let write = async |patch: String| {
        let patch: Value = serde_json::from_str(&patch).unwrap_or_default();
        objects.patch(&arguments.name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    };
    let lead = async {
        loop {
            tokio::select! {
                () = stop.received() => return,
                leads = claims.wait_for(|claim| claim.is_current_for(&arguments.identity)) => {
                    if leads.is_err() {
                        return; // its task has ended with an error, and the process ends with it
                    }
                }
            }
            let lost = async {
                loop {
                    let claim = claims.borrow_and_update().clone();
                    if !claim.is_current_for(&arguments.identity) {
                        return;
                    }
                    tokio::select! {
                        () = claim.expire() => {}
                        changed = claims.changed() => if changed.is_err() { return },
                    }
                }
            };
            tokio::select! {
                () = lost => {}
                () = arguments.work(stop.received(), &write) => return,
            }
        }
    };
    lead.await;
    // Without a receiver the task gives the lease up.
    drop(claims);
    task.await??;
    Ok(())
}

/// kubert takes a lease that is there.
async fn create(leases: &Api<Lease>, name: &str) -> Result<(), kube::Error> {
    let lease = Lease {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(LeaseSpec::default()),
    };
    match leases.create(&PostParams::default(), &lease).await {
        Err(kube::Error::Api(error)) if error.code == 409 => Ok(()),
        outcome => outcome.map(drop),
    }
}
