//! Requests of a follower as another user. No fence can refuse them; `check` finds who may send them.

use super::{
    ground::{ACCOUNT, Ground, refused, send},
    managing::texts,
};
use crate::support::until;
use http::{HeaderName, Method, Request, header::CONTENT_TYPE};
use kube_client::{Client, Error};
use kube_leader_gate::{Policy, lease::LeaseName, policy::Preset};
use serde_json::{Value, json};
use test_support::kube_leader_gate_fence::{Fence, Writers};

const AUTHENTICATION: &str = "authentication.k8s.io";
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const MEANS: &str = "the fence sees only the impersonated user, and lets it pass; take the permission away";

/// As [`Ground::touch`], in another user's name.
async fn touch_as(ground: &Ground, client: &Client, headers: &[(&str, &str)]) -> Result<Value, Error> {
    let map = json!({ "metadata": { "generateName": "map-" } }).to_string().into_bytes();
    let request = Request::post(ground.path("configmaps")).header(CONTENT_TYPE, "application/json");
    let mut request = request.body(map).expect("a request");
    for (name, value) in headers {
        let name = name.parse::<HeaderName>().expect("a name");
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    client.request(request).await
}

/// A rule of RBAC.
fn rule(verb: &str, group: &str, resource: &str) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] })
}

/// A follower, in a namespace where jane and the service account `default` may write.
async fn follower(ground: &Ground) -> (Fence, Client) {
    let fence = ground.fence(&Policy::strict());
    ground.fenced(&fence).await;
    ground.hold("pod-a").await;
    let rbac = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": "writers" },
        "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "User", "name": "jane", "apiGroup": rbac },
                     { "kind": "ServiceAccount", "name": "default", "namespace": ground.namespace }],
    });
    let path = format!("/apis/{rbac}/v1/namespaces/{}/rolebindings", ground.namespace);
    send(&ground.admin, Method::POST, &path, Some(&binding)).await.expect("bound");
    let b = ground.pod("pod-b").await;
    until("a follower is refused", async || refused(&ground.touch(&b).await)).await;
    (fence, b)
}

pub async fn impersonated_write_passes_and_check_names_the_permission() {
    let mut named = rule("impersonate", "", "users");
    named["resourceNames"] = json!(["jane"]);
    let constrained = [
        rule("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts"),
        rule("impersonate-on:serviceaccount:create", "", "configmaps"),
    ];
    let of_account = "impersonate:serviceaccount serviceaccounts";
    let accounts = "impersonate serviceaccounts";
    for (rules, as_jane, check, check_as) in [
        (vec![rule("impersonate", "", "users")], true, "impersonate users", "impersonate users"),
        (constrained.to_vec(), false, of_account, of_account),
        (vec![rule("impersonate", "", "serviceaccounts")], false, accounts, accounts),
        // Only the replica itself can ask what it may do to one name.
        (vec![named], true, "", "impersonate users"),
    ] {
        let ground = Ground::new().await;
        let (fence, b) = follower(&ground).await;
        assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
        assert_eq!(texts(&fence.check_as(&b).await.expect("checked")), [""; 0]);
        // As the built-in ClusterRole `edit` in one namespace.
        let where_to = if check == accounts { Some(&*ground.namespace) } else { None };
        ground.grant_in(where_to, "impersonates", rules.into()).await;
        let account = format!("system:serviceaccount:{}:default", ground.namespace);
        let other = [("impersonate-user", if as_jane { "jane" } else { &account })];
        until("it passes", async || touch_as(&ground, &b, &other).await.is_ok()).await;
        assert!(refused(&ground.touch(&b).await), "its own write does not");
        let user = format!("the writer \"system:serviceaccount:{}:{ACCOUNT}\"", ground.namespace);
        for (found, who, may) in [
            (fence.check(&ground.admin).await, &*user, check),
            (fence.check_as(&b).await, "the replica", check_as),
        ] {
            let says = Some(format!("{who} may {may}: {MEANS}")).filter(|_| !may.is_empty());
            assert_eq!(texts(&found.expect("checked")), says.into_iter().collect::<Vec<_>>());
        }
    }
}

/// The Lease is in another namespace, and the account may impersonate in its own one, as the role `edit` permits.
pub async fn account_is_asked_about_in_its_own_namespace() {
    let ground = Ground::new().await;
    let apart = ground.cluster.namespace().await;
    let lease = json!({ "metadata": { "name": "operator" }, "spec": { "holderIdentity": "pod-a" } });
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{apart}/leases");
    send(&ground.admin, Method::POST, &leases, Some(&lease)).await.expect("created");
    let lease = LeaseName::new(apart, "operator").expect("a name");
    let fence = Fence::new(&lease, &ground.writers(), &Policy::strict()).expect("a fence");
    fence.apply(&ground.admin).await.expect("applied");
    let b = ground.pod("pod-b").await;
    until("a follower is refused", async || refused(&ground.touch(&b).await)).await;
    assert_eq!(texts(&fence.check(&ground.admin).await.expect("checked")), [""; 0]);
    let rules = json!([rule("impersonate", "", "serviceaccounts")]);
    ground.grant_in(Some(&ground.namespace), "impersonates", rules).await;
    let may = |found: &[String], who: &str| {
        found.len() == 1 && found[0].starts_with(&format!("{who} may impersonate serviceaccounts: "))
    };
    // The API server's authorizer hears of the grant some milliseconds later.
    until("the replica hears of it", async || {
        may(&texts(&fence.check_as(&b).await.expect("checked")), "the replica")
    })
    .await;
    let account = format!("the writer \"system:serviceaccount:{}:{ACCOUNT}\"", ground.namespace);
    let found = texts(&fence.check(&ground.admin).await.expect("checked"));
    assert!(may(&found, &account), "{found:?}");
}

/// The guide warns of it. So the preset is for programs that make tokens of other accounts.
pub async fn token_that_a_follower_makes_passes_as_the_holder() {
    let ground = Ground::new().await;
    ground.fenced(&ground.fence(&Policy::strict().allow(Preset::TokenRequests))).await;
    let (_, b) = (ground.pod("pod-a").await, ground.pod("pod-b").await);
    ground.hold("pod-a").await;
    assert!(refused(&ground.touch(&b).await));
    let pod = json!({ "kind": "Pod", "apiVersion": "v1", "name": "pod-a" });
    let asks = json!({ "spec": { "audiences": [], "boundObjectRef": pod } });
    let path = ground.path(&format!("serviceaccounts/{ACCOUNT}/token"));
    let made = send(&b, Method::POST, &path, Some(&asks)).await.expect("permitted");
    let mut config = ground.config("pod-c").await;
    config.auth_info.token = Some(made["status"]["token"].as_str().expect("a token").to_owned().into());
    let forged = Client::try_from(config).expect("a client");
    until("the forged holder may write", async || ground.touch(&forged).await.is_ok()).await;
}

/// The pod's name in a request is the API server's word only if the request does not impersonate.
pub async fn forged_name_of_the_holder_passes_and_check_says_so() {
    let ground = Ground::new().await;
    let (fence, b) = follower(&ground).await;
    let extra = format!("userextras/{POD_NAME}");
    let rules = [rule("impersonate", "", "serviceaccounts"), rule("impersonate", AUTHENTICATION, &extra)];
    ground.grant("impersonates", rules.into_iter().collect()).await;
    let account = format!("system:serviceaccount:{}:{ACCOUNT}", ground.namespace);
    let header = format!("impersonate-extra-{}", POD_NAME.replace('/', "%2f"));
    let of_pod = |pod| [("impersonate-user", &*account), (&*header, pod)];
    until("the forged name passes", async || touch_as(&ground, &b, &of_pod("pod-a")).await.is_ok()).await;
    assert!(refused(&touch_as(&ground, &b, &of_pod("pod-b")).await), "it is judged by that name");
    assert!(refused(&touch_as(&ground, &b, &of_pod("")[..1]).await), "it has no pod");
    let found = texts(&fence.check(&ground.admin).await.expect("checked"));
    let may =
        format!("the writer {account:?} may impersonate serviceaccounts, impersonate userextras: {MEANS}");
    assert_eq!(found, [may]);
}

/// RBAC grants everything to this group. Who is in it, an administrator does not see.
pub async fn permission_of_a_group_is_found() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let fence = |writers| Fence::new(&ground.lease(), &writers, &Policy::strict()).expect("a fence");
    let all = "may impersonate users, impersonate groups, impersonate serviceaccounts, ";
    let of_group = fence(Writers::group("candidates").expect("a group"));
    let found = texts(&of_group.check(&ground.admin).await.expect("checked"));
    let says = format!("the writer \"candidates\" {all}");
    assert!(found.last().expect("one").starts_with(&says), "{found:?}");
    let of_users = fence(Writers::users(["candidate-31"]).expect("a user"));
    let found = texts(&of_users.check(&ground.admin).await.expect("checked"));
    assert!(!found.iter().any(|it| it.contains("impersonate")), "{found:?}");
    let replica = ground.cluster.client("candidate-31");
    let found = texts(&of_users.check_as(&replica).await.expect("checked"));
    assert!(found.last().expect("one").starts_with(&format!("the replica {all}")), "{found:?}");
}
