//! What a client of the election sends again when a real API server answers 429.

use crate::{candidate::leading, real::Real, world::World};
use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube_client::{
    Api, Error,
    api::{EvictParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

/// The API server refuses an eviction that a disruption budget forbids with a 429. kube's own client would send it 16
/// times.
pub async fn refused_eviction_is_sent_once() {
    let world = Real::shared().await;
    let admin = world.cluster.client("admin");
    let budgets = Api::<PodDisruptionBudget>::namespaced(admin.clone(), world.namespace());
    let budget = json!({ "metadata": { "name": "all" },
                         "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "x" } } } });
    let budget = serde_json::from_value(budget).expect("a budget");
    budgets.create(&PostParams::default(), &budget).await.expect("a budget");
    let pods = Api::<Pod>::namespaced(admin, world.namespace());
    let pod = json!({ "metadata": { "name": "x", "labels": { "app": "x" } },
                      "spec": { "containers": [{ "name": "x", "image": "x" }], "automountServiceAccountToken": false } });
    let pod = serde_json::from_value(pod).expect("a pod");
    pods.create(&PostParams::default(), &pod).await.expect("a pod");
    // A budget does not protect a pod that does not run.
    let runs =
        json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    pods.patch_status("x", &PatchParams::default(), &Patch::Merge(runs)).await.expect("it runs");

    let leader = leading(&world, "candidate-0").await;
    let evicting = Api::<Pod>::namespaced(leader.client.clone(), world.namespace());
    let refused = evicting.evict("x", &EvictParams::default()).await;
    assert!(matches!(&refused, Err(Error::Api(status)) if status.code == 429), "{refused:?}");
    let statuses =
        world.writes().await.into_iter().filter(|it| it.subresource.as_deref() == Some("eviction"));
    assert_eq!(statuses.map(|it| it.status).collect::<Vec<_>>(), [429]);
}
