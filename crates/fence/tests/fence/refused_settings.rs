//! Fences that cannot work are refused when they are built.

use crate::support::builder;
use kube_leader_gate::{
    ErrInvalid, Identity, Policy,
    kube_client::Client,
    lease::{LeaseName, LeasePool},
    policy::{Preset, Rule},
    testing::ApiServer,
};
use kube_leader_gate_fence::{Fence, Writers};

fn lease() -> LeaseName {
    LeaseName::new("default", "operator").unwrap()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, ErrInvalid>, says: &str) {
    let error = outcome.unwrap_err().to_string();
    assert!(error.starts_with("invalid fence: the ") && error.contains(says), "{error}");
}

#[test]
fn writers_that_cannot_be_told_apart_are_refused() {
    refused(Writers::service_account("", "a"), "service account is \"/a\"");
    refused(Writers::service_account("a", "b c"), "service account is \"a/b c\"");
    refused(Writers::users([""; 0]), "number of users is \"0\"");
    refused(Writers::users((0..101).map(|it| it.to_string())), "number of users is \"101\"");
    refused(Writers::users(["a", ""]), "user is \"\"");
    refused(Writers::users(["a\nb"]), "user is \"a\\nb\"");
    // No identity has such a space, so this user could never write.
    refused("users:a, b".parse::<Writers>(), "user is \" b\"");
    refused(Writers::users(["a "]), "user is \"a \"");
    refused("group: a".parse::<Writers>(), "group is \" a\"");
    refused(Writers::group(""), "group is \"\"");
    refused(Writers::group("system:authenticated"), "a group of the replicas alone");
    refused(Writers::users(["x:a", "b"]).unwrap().prefix("x:"), "the beginning of each user's name");
    refused(Writers::users(["x:"]).unwrap().prefix("x:"), "with the identity after it");
    refused(Writers::users(["x: a"]).unwrap().prefix("x:"), "with the identity after it");
    refused(
        Writers::service_account("a", "b").unwrap().prefix("x:"),
        "the identity of a pod is the pod's name",
    );
}

/// A fence around one of these would stop the cluster.
#[test]
fn users_and_groups_of_kubernetes_are_refused() {
    for group in [
        "system:",
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
        "system:serviceaccount:a:b",
        "system:nodes",
        "system:bootstrappers:kubeadm:default-node-token",
        "system:monitoring",
    ] {
        refused(Writers::group(group), "which does not begin with system:");
        refused(format!("group:{group}").parse::<Writers>(), "give pods of one account service-account:");
    }
    for user in [
        "system:",
        "system:apiserver",
        "system:kube-controller-manager",
        "system:node:n",
        "system:serviceaccount:a",
        "system:serviceaccount:a:",
        "system:serviceaccount::b",
        "system:serviceaccount:a:b:c",
        "system:serviceaccount:a:*",
        "system:serviceaccounts:a:b",
    ] {
        refused(Writers::users([user]), "only system:serviceaccount:NAMESPACE:NAME");
        refused(Writers::users(["a", user, "z"]), &format!("user is {user:?}"));
    }
    let account = "system:serviceaccount:a:b.c";
    assert!(Writers::users([account]).unwrap().prefix("system:serviceaccount:a:").is_ok());
    assert!(Writers::users([account, "x:system:y"]).is_ok() && Writers::group("kube:system:x").is_ok());
}

/// So the check finds the fence of a renamed Lease, in whatever order its users were given.
#[test]
fn order_and_repetition_of_users_do_not_matter() {
    assert_eq!(Writers::users(["b", "a", "b"]).unwrap(), Writers::users(["a", "b"]).unwrap());
}

#[test]
fn policies_that_cel_cannot_express_are_refused() {
    let writers = Writers::group("replicas").unwrap();
    let closure = Policy::strict().allow_if(|_| true);
    refused(Fence::new(&lease(), &writers, &closure), "the API server cannot run a closure of this process");
    let rules = |count: usize| {
        (0..count).fold(Policy::strict(), |policy, it| {
            policy.allow(
                Rule::new("", "pods").name(format!("p{it}")).verbs([kube_leader_gate::request::Verb::Patch]),
            )
        })
    };
    refused(Fence::new(&lease(), &writers, &rules(63)), "number of exemptions is \"63\", allowed: 62");
    assert!(Fence::new(&lease(), &writers, &rules(62)).is_ok());
    let repeated = (0..70).fold(Policy::strict(), |policy, _| policy.allow(Preset::Events));
    assert!(Fence::new(&lease(), &writers, &repeated).is_ok(), "one exemption");
    let long = LeaseName::new("a".repeat(60), format!("{}.b", "a".repeat(200))).unwrap();
    refused(Fence::new(&long, &writers, &Policy::strict()), "240 characters at most");
}

#[tokio::test]
async fn an_identity_that_no_token_can_say_is_refused() {
    let build = |identity: &str, writers: Writers| {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let lock = client.clone();
        let fence = Fence::new(&lease(), &writers, &Policy::strict()).unwrap();
        let election =
            builder("x").identity(Identity::new(identity).unwrap()).layer_lock(fence.layer(client));
        election.build_in(&LeasePool::over(move || Ok(lock.clone())).expect("a client")).map(drop)
    };
    let pods = || Writers::service_account("default", "operator").unwrap();
    let users = || Writers::users(["x:a"]).unwrap().prefix("x:").unwrap();
    for (identity, writers, says) in [
        (
            "host_0123",
            pods(),
            "the name of the pod, since the fence compares the holder with the pod in the token",
        ),
        ("x:a", users(), "the name of one of the fence's users, without the prefix"),
    ] {
        let error = build(identity, writers).unwrap_err().to_string();
        assert!(error.contains(&format!("the identity is {identity:?}")) && error.contains(says), "{error}");
    }
    build("pod-a", pods()).unwrap();
    build("a", users()).unwrap();
}

/// It would open the gate by the holder of another lease.
#[tokio::test]
async fn fence_of_another_lease_is_refused() {
    let client = Client::new(ApiServer::new().service(), "default");
    let other = LeaseName::new("default", "other").unwrap();
    let fence = Fence::new(&other, &Writers::users(["x"]).unwrap(), &Policy::strict()).unwrap();
    let election = builder("x").layer_lock(fence.layer(client.clone()));
    let built = election.build_in(&LeasePool::over(move || Ok(client.clone())).expect("a client"));
    let error = built.unwrap_err().to_string();
    let says =
        "invalid fence: the lease is \"default/other\", allowed: the election's lease, default/operator";
    assert!(error.ends_with(says), "{error}");
}
