//! The operator. It runs on every replica, and marks each `ConfigMap` of its namespace.

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Error, ResourceExt,
    api::{Patch, PatchParams},
    runtime::controller::{Action, Controller},
};
use kube_leader_gate::{Candidate, ErrLeadershipLost, ErrNotLeader};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// The name of the lease.
pub const NAME: &str = "marker";
/// The label that it sets to `true`.
pub const MARK: &str = "marked";

/// Runs the controller until `shutdown`. Each gain of leadership brings every object back.
pub async fn run(
    controller: Controller<ConfigMap>,
    maps: Api<ConfigMap>,
    candidate: Candidate,
    shutdown: impl Future<Output = ()> + Send + Sync + 'static,
) {
    controller
        .reconcile_all_on(candidate.gains())
        .graceful_shutdown_on(shutdown)
        .run(gated, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(maps))
        .for_each(async |outcome| {
            if let Err(error) = outcome {
                tracing::warn!(%error, "reconciliation failed, will be retried");
            }
        })
        .await;
}

/// Leaves to the leader what the gate refuses or cuts off, as `kube_leader_gate::runtime::gated` does on kube-runtime 5.
async fn gated(map: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>) -> Result<Action, Error> {
    match reconcile(map, maps).await {
        Err(error) if ErrNotLeader::find(&error).is_some() || ErrLeadershipLost::find(&error).is_some() => {
            Ok(Action::await_change())
        }
        outcome => outcome,
    }
}

async fn reconcile(map: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>) -> Result<Action, Error> {
    let mark = Patch::Merge(json!({ "metadata": { "labels": { MARK: "true" } } }));
    maps.patch_metadata(&map.name_any(), &PatchParams::default(), &mark).await?;
    Ok(Action::await_change())
}
