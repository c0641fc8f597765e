//! A candidate with kube-leader-gate: its work runs while it leads.

use common::{Arguments, Failure, Stop};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Config,
    api::{Patch, PatchParams},
};
use kube_leader_gate::{CancellationToken, Election, Identity, LeaseTiming, runtime::keep_open};
use serde_json::Value;
use std::{num::NonZeroU8, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let stop = Stop::on_sigterm()?;
    let seconds = Duration::from_secs;
    let timing = LeaseTiming::new(
        seconds(common::LEASE_DURATION),
        seconds(common::RENEW_DEADLINE),
        seconds(common::RETRY_PERIOD),
    )?;
    let config = Config::infer().await?;
    let election = Election::builder(&arguments.namespace, &arguments.name)
        .identity(Identity::new(&arguments.identity)?)
        .timing(timing)
        .build(&config)?;
    let client = election.client(&config)?;
    let objects = Api::<ConfigMap>::namespaced(client.clone(), &arguments.namespace);
    let name = &arguments.name;
    let work = |ends: CancellationToken, _| {
        let (arguments, objects) = (arguments.clone(), objects.clone());
        async move {
            let write = async |patch: String| {
                let patch: Value = serde_json::from_str(&patch).unwrap_or_default();
                objects.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
            };
            arguments.work(ends.cancelled(), write).await;
        }
    };
    let election = election.run_while_leading(async { stop.received().await }, work);
    tokio::select! {
        finished = election => finished?.into_output(),
        never = keep_open(client, NonZeroU8::MIN) => match never {},
    }
    Ok(())
}
