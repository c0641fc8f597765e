//! `examples/operator/rbac.yaml` suffices and grants nothing more than needed. The test uses a real API server of its
//! own that has never seen the operator's kind.

use crate::{
    apiserver::{AuditEvent, Cluster, assets},
    operator::{Greeting, NAME},
    operators::process::{Replica, kubeconfig},
    operators::world::kind_is_served,
    support::PATIENCE,
    user::User,
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    rbac::v1::{ClusterRole, PolicyRule, Role},
};
use kube::{
    Api, Client, CustomResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
};
use test_support::wait::until;

const MANIFEST: &str = include_str!("../../../examples/operator/rbac.yaml");

/// Group, resource and verb.
type Right = (String, String, String);

pub async fn rbac_manifest_grants_exactly_what_is_needed() {
    let cluster = Cluster::start(assets()).await;
    let namespace = cluster.namespace().await;
    kubectl(&cluster, &["apply", "-f", "-"], &MANIFEST.replace("my-namespace", &namespace));
    let account = format!("system:serviceaccount:{namespace}:{NAME}");
    until(PATIENCE, "it is in force", || {
        may(&cluster, &account, &["create", "leases", "-n", &namespace])
            && may(
                &cluster,
                &account,
                &["patch", &format!("customresourcedefinitions/{}", Greeting::crd_name())],
            )
    })
    .await;
    let token = kubectl(&cluster, &["create", "token", NAME, "-n", &namespace], "");
    let kubeconfig = kubeconfig(&cluster.url(), &cluster.ca(), token.trim(), &namespace);
    let start = |name, mode| Replica::start(name, &kubeconfig, &["--cluster", "--fast", "--mode", mode]);

    let mut config = cluster.config("admin");
    config.default_namespace.clone_from(&namespace);
    let client = Client::try_from(config).unwrap();
    let mut user = User::new(client.clone());
    let leases: Api<Lease> = Api::default_namespaced(client.clone());

    // Both wait until an administrator applies the kind, and then for the release.
    let held = json!({ "metadata": { "name": NAME }, "spec": { "holderIdentity": "outsider", "leaseDurationSeconds": 600, "leaseTransitions": 0 } });
    leases.create(&PostParams::default(), &serde_json::from_value(held).unwrap()).await.unwrap();
    let replicas = [start("pod-a", "gated"), start("pod-b", "gated")];
    until(PATIENCE, "they wait for the kind", || cluster.requests().iter().any(waits_for_kind)).await;
    let released = Patch::Merge(
        json!({ "spec": { "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z" } }),
    );
    leases.patch(NAME, &PatchParams::default(), &released).await.unwrap();
    kind_is_served(&client).await;
    work(&mut user).await;
    end(replicas).await;

    // These create the lease.
    leases.delete(NAME, &DeleteParams::default()).await.unwrap();
    let replicas = [start("pod-a", "leading-only"), start("pod-b", "leading-only")];
    work(&mut user).await;
    end(replicas).await;

    let mut asked = cluster.requests();
    asked.retain(|event| event.user.username == account);
    let refused: Vec<_> = asked.iter().filter(|event| event.response_status.code == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    // Every authenticated user may read it, without a Role.
    asked.retain(|event| event.request_uri != "/version");
    let needed: BTreeSet<_> = asked.iter().flat_map(rights).collect();
    let roles: Api<Role> = Api::namespaced(client.clone(), &namespace);
    let cluster_roles: Api<ClusterRole> = Api::all(client);
    let mut granted = roles.get(NAME).await.unwrap().rules.unwrap();
    granted.extend(cluster_roles.get(NAME).await.unwrap().rules.unwrap());
    assert_eq!(needed, granted.iter().flat_map(granted_by).collect());
}

fn may(cluster: &Cluster, account: &str, what: &[&str]) -> bool {
    let mut kubectl = cluster.kubectl("admin");
    kubectl.args(["auth", "can-i", "--quiet", "--as", account]).args(what);
    kubectl.stderr(Stdio::null()).status().unwrap().success()
}

fn waits_for_kind(event: &AuditEvent) -> bool {
    event.verb == "watch"
        && event.object_ref.resource == "customresourcedefinitions"
        && event.user.username.ends_with(NAME)
}

async fn work(user: &mut User) {
    let name = user.create().await.unwrap();
    user.satisfied(PATIENCE).await.unwrap();
    user.change(&name, "another person").await.unwrap();
    user.satisfied(PATIENCE).await.unwrap();
    user.delete(&name).await.unwrap();
    user.satisfied(PATIENCE).await.unwrap();
}

async fn end(replicas: [Replica; 2]) {
    for replica in replicas {
        replica.terminate().await;
    }
}

/// The permissions that the request needed.
fn rights(event: &AuditEvent) -> Vec<Right> {
    let object = &event.object_ref;
    let resource = match &object.subresource {
        Some(subresource) => format!("{}/{subresource}", object.resource),
        None => object.resource.clone(),
    };
    // Applying an object that does not exist needs both.
    let made = event.verb == "patch" && event.response_status.code == 201;
    let verbs = std::iter::once(event.verb.as_str()).chain(made.then_some("create"));
    verbs.map(|verb| (object.api_group.clone(), resource.clone(), verb.to_owned())).collect()
}

fn granted_by(rule: &PolicyRule) -> Vec<Right> {
    let (groups, resources) = (rule.api_groups.as_ref().unwrap(), rule.resources.as_ref().unwrap());
    let right = |verb: &String| (groups[0].clone(), resources[0].clone(), verb.clone());
    assert_eq!((groups.len(), resources.len()), (1, 1));
    rule.verbs.iter().map(right).collect()
}

fn kubectl(cluster: &Cluster, args: &[&str], input: &str) -> String {
    let mut kubectl: Command = cluster.kubectl("admin");
    let mut child = kubectl.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}
