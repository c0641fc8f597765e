//! The sidecar with `--fence`.

use super::ground::{ACCOUNT, Ground, send};
use crate::{operators::process::kubeconfig, support::until};
use http::Method;
use kube_leader_gate::{Policy, lease::LeaseName};
use serde_json::Value;
use test_support::kube_leader_gate_fence::Fence;
use test_support::sidecar::{callers::create, process::Sidecar};

/// The lease of each sidecar in the tests.
const SIDECARS: (&str, &str) = ("default", "app");

pub async fn it_opens_behind_a_fence_and_names_its_refusals() {
    let ground = Ground::alone().await;
    let writers = format!("service-account:{}/{ACCOUNT}", ground.namespace);
    let (url, ca) = (ground.cluster.url(), ground.cluster.ca());
    let kubeconfig = kubeconfig(&url, &ca, &ground.token(Some("pod-a")).await, SIDECARS.0);
    let sidecar = Sidecar::start_with(kubeconfig, "pod-a", &["--timing", "fast", "--fence", &writers]).await;
    until("it says why its gate is shut", async || {
        sidecar.leader().await["trouble"].as_str().is_some_and(|trouble| trouble.contains("no fence"))
    })
    .await;
    let (code, reason, _) = create(sidecar.addr, "early").await.status();
    assert_eq!((code, &*reason), (424, "NotLeader"));

    let lease = LeaseName::new(SIDECARS.0, SIDECARS.1).expect("a name");
    let fence = Fence::new(&lease, &ground.writers(), &Policy::strict()).expect("a fence");
    fence.apply(&ground.admin).await.expect("applied");
    until("it leads", async || sidecar.leader().await["is_leader"] == true).await;
    assert_eq!(create(sidecar.addr, "first").await.code, 201);

    // From now on it refuses the holder too.
    let path = format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{}", fence.name());
    let mut policy = send(&ground.admin, Method::GET, &path, None).await.expect("the policy");
    let validations = policy["spec"]["validations"].as_array_mut().expect("a list");
    let of_writes = |it: &&mut Value| it["expression"] == "variables.holds";
    validations.iter_mut().find(of_writes).expect("the one that judges writes")["expression"] =
        "false".into();
    send(&ground.admin, Method::PUT, &path, Some(&policy)).await.expect("changed");
    let mut refused = None;
    until("the fence refuses a write", async || {
        let answer = create(sidecar.addr, &format!("late-{}", fastrand::u32(..))).await;
        refused = (answer.code != 201).then(|| answer.status());
        refused.is_some()
    })
    .await;
    let (code, reason, message) = refused.expect("a refusal");
    assert_eq!((code, &*reason), (424, "NotLeader"));
    assert!(message.contains("refused an admitted write (create), and nothing was changed"), "{message}");
    assert!(message.contains(fence.name()), "{message}");
}
