//! Applying, checking and removing a fence.

use super::ground::{Ground, send};
use crate::support::until;
use http::{Method, Request};
use kube_client::{Client, client::Body};
use kube_leader_gate::{Policy, lease::LeaseName, policy::Preset};
use serde_json::{Value, json};
use std::{io::Write, process::Stdio};
use test_support::kube_leader_gate_fence::{Applied, Drift, ErrFence, Fence, Impersonator};
use tower::service_fn;

pub(super) const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub(super) const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

pub(super) const ANCHOR: &str = "kube-leader-gate.anchor";

pub(super) async fn get(ground: &Ground, collection: &str, name: &str) -> Option<Value> {
    match send(&ground.admin, Method::GET, &format!("{collection}/{name}"), None).await {
        Ok(object) => Some(object),
        Err(kube_client::Error::Api(status)) if status.code == 404 => None,
        Err(error) => panic!("{error}"),
    }
}

async fn patch(ground: &Ground, collection: &str, fence: &Fence, manager: &str, mut fields: Value) {
    let kind = if collection == POLICIES { "" } else { "Binding" };
    fields["apiVersion"] = "admissionregistration.k8s.io/v1".into();
    fields["kind"] = format!("ValidatingAdmissionPolicy{kind}").into();
    fields["metadata"]["name"] = fence.name().into();
    let path = format!("{collection}/{}?fieldManager={manager}&force=true", fence.name());
    send(&ground.admin, Method::PATCH, &path, Some(&fields)).await.expect("patched");
}

pub(super) fn texts(findings: &[Drift]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

pub async fn apply_is_idempotent_and_check_finds_nothing() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    let mut missing = texts(&fence.check(&ground.admin).await.expect("checked"));
    // Another test may have made it.
    missing.retain(|it| !it.contains(ANCHOR));
    assert_eq!(missing.len(), 3, "policy, binding, lease: {missing:?}");
    assert!(missing[2].contains("refuses no write until a candidate creates it"));
    ground.hold("no-pod").await;
    assert_eq!(fence.apply(&ground.admin).await.expect("applied"), Applied::Created);
    assert_eq!(fence.apply(&ground.admin).await.expect("applied"), Applied::Unchanged);
    assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
    let other = ground.fence(&Policy::strict().allow(Preset::Events));
    let differs = texts(&other.check(&ground.admin).await.expect("checked"));
    assert!(
        differs.len() == 1 && differs[0].contains("matchConditions[is-not-of-events] is missing"),
        "{differs:?}"
    );
    assert_eq!(other.apply(&ground.admin).await.expect("applied"), Applied::Changed);
    assert_eq!(texts(&other.check(&ground.admin).await.expect("checked")), [""; 0]);
    assert!(fence.remove(&ground.admin).await.expect("removed"));
    assert!(!fence.remove(&ground.admin).await.expect("nothing to remove"));
    assert!(get(&ground, POLICIES, fence.name()).await.is_none());
    assert!(get(&ground, BINDINGS, fence.name()).await.is_none());
}

pub async fn kubectl_applies_the_printed_manifest() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let fence =
        ground.fence(&Preset::ALL.iter().fold(Policy::strict(), |policy, preset| policy.allow(*preset)));
    let mut kubectl = ground.cluster.kubectl("admin");
    let mut kubectl = kubectl.args(["apply", "-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    kubectl.stdin.take().unwrap().write_all(fence.to_yaml().as_bytes()).unwrap();
    assert!(kubectl.wait().unwrap().success());
    assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
}

/// Each of these would let writes through, or refuse too many.
pub async fn check_names_each_change_and_apply_undoes_it() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let fence = ground.fence(&Policy::strict());
    fence.apply(&ground.admin).await.expect("applied");
    let hole = json!({ "name": "hole", "expression": "false" });
    for (collection, fields, means) in [
        (
            POLICIES,
            json!({ "spec": { "failurePolicy": "Ignore" } }),
            "a write that the API server cannot judge passes",
        ),
        (POLICIES, json!({ "spec": { "matchConditions": [hole] } }), "followers may send something else"),
        (
            POLICIES,
            json!({ "spec": { "validations": [{ "expression": "true" }] } }),
            "the fence judges by another rule",
        ),
        (
            BINDINGS,
            json!({ "spec": { "policyName": fence.name(), "validationActions": ["Audit"] } }),
            "the API server does not refuse the writes of followers",
        ),
        (
            BINDINGS,
            json!({ "spec": { "policyName": fence.name(), "paramRef": {
                "name": "other", "namespace": ground.namespace, "parameterNotFoundAction": "Allow" } } }),
            "the fence follows another Lease",
        ),
    ] {
        patch(&ground, collection, &fence, "another", fields).await;
        let found = texts(&fence.check(&ground.admin).await.expect("checked"));
        assert!(!found.is_empty() && found.iter().all(|it| it.contains(means)), "{means}: {found:?}");
        assert_eq!(fence.apply(&ground.admin).await.expect("applied"), Applied::Changed, "{means}");
        assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0], "{means}");
    }
}

/// In a set, server-side apply keeps what others have put there, and the API server takes no `Deny` beside `Warn`.
pub async fn apply_mends_actions_that_exclude_each_other() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let fence = ground.fence(&Policy::strict());
    fence.apply(&ground.admin).await.expect("applied");
    let mut binding = get(&ground, BINDINGS, fence.name()).await.expect("it stands");
    binding["spec"]["validationActions"] = json!(["Warn"]);
    binding["metadata"]["annotations"]["kube-leader-gate/lease"] = "another".into();
    let path = format!("{BINDINGS}/{}", fence.name());
    send(&ground.admin, Method::PUT, &path, Some(&binding)).await.expect("changed");
    let found = texts(&fence.check(&ground.admin).await.expect("checked"));
    assert!(
        found.len() == 2 && found[1].contains("without Deny, the API server does not refuse"),
        "{found:?}"
    );
    assert_eq!(fence.apply(&ground.admin).await.expect("applied"), Applied::Changed);
    assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
}

/// Another administrator removes the fence between the look and the change.
pub async fn object_that_goes_during_apply_has_changed() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let fence = ground.fence(&Policy::strict());
    fence.apply(&ground.admin).await.expect("applied");
    let (admin, other) = (ground.admin.clone(), fence.clone());
    let service = service_fn(move |request: Request<Body>| {
        let (admin, other) = (admin.clone(), other.clone());
        async move {
            if request.method() == Method::PUT {
                assert!(other.remove(&admin).await.expect("removed"), "at the first change");
            }
            admin.send(request).await
        }
    });
    let error = fence.apply(&Client::new(service, "default")).await.unwrap_err();
    assert!(matches!(error, ErrFence::Changed { .. }), "{error}");
    assert!(error.to_string().starts_with("another client changed the ValidatingAdmissionPolicy"), "{error}");
    assert!(get(&ground, POLICIES, fence.name()).await.is_none(), "nothing is half applied");
}

/// With a second binding, the replicas must hold the other Lease too.
pub async fn second_binding_of_the_policy_is_named() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let fence = ground.fence(&Policy::strict());
    fence.apply(&ground.admin).await.expect("applied");
    let mut second = serde_json::to_value(fence.binding()).expect("JSON");
    let name = format!("second.{}", fence.name());
    second["metadata"] = json!({ "name": name });
    second["spec"]["paramRef"]["name"] = "other".into();
    send(&ground.admin, Method::POST, BINDINGS, Some(&second)).await.expect("made");
    let found = texts(&fence.check(&ground.admin).await.expect("checked"));
    let says = format!(
        "ValidatingAdmissionPolicyBinding {name:?} puts the policy in force too: the fence also judges as this binding \
         says, for example by another Lease; remove it"
    );
    assert_eq!(found, [says]);
}

pub async fn objects_of_other_tools_are_left_alone() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    let of_another = |mut object: Value| {
        object["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": "helm" });
        object
    };
    let binding = of_another(serde_json::to_value(fence.binding()).unwrap());
    let policy = of_another(serde_json::to_value(fence.policy()).unwrap());
    for (collection, object, kind) in [
        (BINDINGS, binding, "ValidatingAdmissionPolicyBinding"),
        (POLICIES, policy, "ValidatingAdmissionPolicy"),
    ] {
        let made = send(&ground.admin, Method::POST, collection, Some(&object)).await.expect("made");
        let says = format!(
            "the {kind} {:?} was not made by kube-leader-gate (managed by: helm), which changes only its own \
             objects; delete it if nothing needs it",
            fence.name()
        );
        for error in [
            fence.check(&ground.admin).await.unwrap_err(),
            fence.apply(&ground.admin).await.unwrap_err(),
            fence.remove(&ground.admin).await.unwrap_err(),
        ] {
            assert_eq!(error.to_string(), says);
        }
        let now = get(&ground, collection, fence.name()).await.expect("it stands");
        assert_eq!(now["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
        let other = if collection == BINDINGS { POLICIES } else { BINDINGS };
        assert!(get(&ground, other, fence.name()).await.is_none(), "nothing is half applied");
        let path = format!("{collection}/{}", fence.name());
        send(&ground.admin, Method::DELETE, &path, None).await.expect("deleted");
    }
}

/// A user with these permissions.
async fn user(ground: &Ground, user: &str, rules: Value) -> Client {
    let name = format!("{user}-{}", ground.namespace);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    send(&ground.admin, Method::POST, &format!("{rbac}/clusterroles"), Some(&role)).await.expect("a role");
    let subject = json!({ "kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io" });
    let role = json!({ "kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io" });
    let binding = json!({ "metadata": { "name": name }, "subjects": [subject], "roleRef": role });
    send(&ground.admin, Method::POST, &format!("{rbac}/clusterrolebindings"), Some(&binding))
        .await
        .expect("bound");
    ground.cluster.client(user)
}

fn rule(resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": ["admissionregistration.k8s.io", "coordination.k8s.io"],
            "resources": resources, "verbs": verbs })
}

const BOTH: [&str; 2] = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];

/// The policy is gone again, and the message says which permission is missing.
pub async fn a_failed_binding_leaves_no_policy() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let fence = ground.fence(&Policy::strict());
    let rules = json!([
        rule(&BOTH[..1], &["get", "create", "patch", "delete"]),
        rule(&BOTH[1..], &["get"]),
        rule(&["leases"], &["get"])
    ]);
    let client = user(&ground, "restricted-10", rules).await;
    until("the role is in force", async || {
        !matches!(fence.apply(&client).await, Err(ErrFence::Forbidden { verb: "get" | "delete", .. }))
    })
    .await;
    let error = fence.apply(&client).await.unwrap_err();
    assert!(
        error.to_string().starts_with(
            "RBAC does not allow it; grant patch on \
             validatingadmissionpolicybindings.admissionregistration.k8s.io: "
        ),
        "{error}"
    );
    assert!(get(&ground, POLICIES, fence.name()).await.is_none());
}

pub async fn missing_permission_to_read_is_named() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    let error = fence.check(&ground.cluster.client("restricted-11")).await.unwrap_err();
    let says =
        "RBAC does not allow it; grant get on validatingadmissionpolicies.admissionregistration.k8s.io: ";
    assert!(error.to_string().starts_with(says), "{error}");
}

pub async fn documented_role_of_the_administrator_suffices() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let guide = include_str!("../../../crates/fence/README.md");
    let block = guide.split("```yaml\n").find(|block| block.contains("kind: ClusterRole\n")).expect("a role");
    let role: Value = serde_saphyr::from_str(block.split("```").next().unwrap()).expect("YAML");
    let client = user(&ground, "restricted-12", role["rules"].clone()).await;
    let fence = ground.fence(&Policy::strict());
    until("the role is in force", async || fence.remove(&client).await.is_ok()).await;
    assert_eq!(fence.apply(&client).await.expect("applied"), Applied::Created);
    patch(
        &ground,
        POLICIES,
        &fence,
        "another",
        json!({ "spec": { "matchConditions": [
        { "name": "hole", "expression": "false" }] } }),
    )
    .await;
    assert_eq!(fence.apply(&client).await.expect("applied"), Applied::Changed);
    assert_eq!(texts(&fence.check(&client).await.expect("checked")), [""; 0]);
    assert!(fence.remove(&client).await.expect("removed"));
}

/// The old fence still follows the old name, and refuses every write.
pub async fn renamed_lease_is_found() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let old = LeaseName::new(&ground.namespace, "old-name").expect("a name");
    let old = Fence::new(&old, &ground.writers(), &Policy::strict()).expect("a fence");
    old.apply(&ground.admin).await.expect("applied");
    let fence = ground.fence(&Policy::strict());
    fence.apply(&ground.admin).await.expect("applied");
    let findings = texts(&fence.check(&ground.admin).await.expect("checked"));
    let lease = format!("judges the same replicas by the Lease \"{}/old-name\"", ground.namespace);
    assert!(findings.len() == 1 && findings[0].contains(&lease), "{findings:?}");
}

pub async fn a_token_without_a_pod_is_refused_beforehand() {
    let ground = Ground::new().await;
    let fence = ground.fence(&Policy::strict());
    let identified = fence.identify(&ground.pod("pod-a").await).await.expect("identified");
    assert_eq!(identified, Impersonator::Replica("pod-a".to_owned()));
    let identified = fence.identify(&ground.admin).await.expect("identified");
    assert_eq!(identified, Impersonator::Other("admin".to_owned()));
    let podless = Client::try_from(ground.podless_config().await).expect("a client");
    let error = fence.apply(&podless).await.unwrap_err();
    assert!(matches!(error, ErrFence::NoPodInToken { .. }), "{error}");
    assert!(
        error.to_string().contains("names no pod, so the fence would refuse all of its writes"),
        "{error}"
    );
    assert!(get(&ground, POLICIES, fence.name()).await.is_none());
}
