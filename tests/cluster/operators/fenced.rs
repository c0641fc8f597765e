//! Replicas with `--fence`, behind a fence in the API server.

use super::{
    process::{Replica, kubeconfig},
    world::{admin_of, kind_is_served, leader_among},
};
use crate::{
    fence::ground::{ACCOUNT, Ground},
    operator::NAME,
    support::PATIENCE,
    user::User,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube_leader_gate::{Policy, lease::LeaseName};
use test_support::kube_leader_gate_fence::Fence;

pub async fn replicas_hand_over_behind_a_fence() {
    let ground = Ground::new().await;
    let lease = LeaseName::new(&ground.namespace, NAME).expect("a name");
    let fence = Fence::new(&lease, &ground.writers(), &Policy::strict()).expect("a fence");
    fence.apply(&ground.admin).await.expect("applied");
    let leases = Api::<Lease>::namespaced(ground.admin.clone(), &ground.namespace);
    let mut replicas = Vec::new();
    for name in ["pod-a", "pod-b"] {
        let token = ground.token(Some(name)).await;
        let (url, ca) = (ground.cluster.url(), ground.cluster.ca());
        let kubeconfig = kubeconfig(&url, &ca, &token, &ground.namespace);
        let writers = format!("service-account:{}/{ACCOUNT}", ground.namespace);
        replicas.push(Replica::start(name, &kubeconfig, &["--cluster", "--fast", "--fence", &writers]));
        leader_among(&leases, &replicas).await;
    }
    let client = admin_of(ground.cluster, &ground.namespace);
    kind_is_served(&client).await;
    let mut user = User::new(client);
    let name = user.create().await.expect("created");
    user.satisfied(PATIENCE).await.expect("by the first leader");
    replicas.remove(0).terminate().await;
    user.change(&name, "moon").await.expect("changed");
    user.satisfied(PATIENCE).await.expect("by the second leader");
    let log = ground.cluster.write_log();
    let refused: Vec<_> = log
        .iter()
        .filter(|it| it.namespace.as_ref() == Some(&ground.namespace) && it.resource != "leases")
        .filter(|it| it.user.starts_with("system:serviceaccount:") && !it.took_effect())
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    replicas.remove(0).terminate().await;
}
