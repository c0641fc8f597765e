//! The documented Role, and candidates without it.

use super::{
    LOOK,
    node::{Node, end_after_renewal, ended, running},
    replicas::{Server, leader_and_follower, replica},
};
use crate::{
    real::Real,
    support::{PATIENCE, throughout, until, within},
    world::World,
};
use http::{Request, header::CONTENT_TYPE};
use kube_leader_gate::election::LeaseEnd;
use serde_json::{Value, json};

const GUIDE: &str = include_str!("../../../crates/early-takeover/README.md");

/// Grants these rules to both users. Returns once they are in force.
async fn grant(world: &Server, name: &str, users: [&str; 2], rules: Value) {
    let first = &rules[0];
    let (group, resource, verb) = (&first["apiGroups"][0], &first["resources"][0], &first["verbs"][0]);
    let granted = json!({ "group": group, "resource": resource, "verb": verb });
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", world.namespace());
    let post = async |kind: &str, body: Value| {
        let request = Request::post(format!("{path}/{kind}")).header(CONTENT_TYPE, "application/json");
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        world.client("admin").request::<Value>(request).await.expect("an answer")
    };
    post("roles", json!({ "metadata": { "name": name }, "rules": rules })).await;
    let group = "rbac.authorization.k8s.io";
    let subjects = users.map(|user| json!({ "apiGroup": group, "kind": "User", "name": user }));
    let role = json!({ "apiGroup": group, "kind": "Role", "name": name });
    post("rolebindings", json!({ "metadata": { "name": name }, "roleRef": role, "subjects": subjects }))
        .await;
    until("it is in force", async || world.allows(users[1], granted.clone()).await).await;
}

async fn grant_leases(world: &Server, users: [&str; 2]) {
    let rule = json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"] });
    grant(world, "leases", users, json!([rule])).await;
}

fn documented_rules() -> Value {
    let role =
        GUIDE.split("```yaml\n").find(|block| block.contains("kind: Role\n")).expect("a Role in the guide");
    // Its binding follows.
    let role = role.split("```").next().and_then(|yaml| yaml.split("---\n").next()).expect("an end");
    let role: Value = serde_saphyr::from_str(role).expect("YAML");
    role["rules"].clone()
}

async fn refused(world: &Server, users: [&str; 2]) -> Vec<String> {
    let mut events = world.requests().await;
    events.retain(|event| users.contains(&&*event.user.username) && event.response_status.code == 403);
    events.retain(|event| event.stage == "ResponseComplete");
    events.iter().map(|event| format!("{} {}", event.verb, event.object_ref.resource)).collect()
}

pub async fn documented_role_is_sufficient() {
    let (world, users) = (Real::shared().await, ["restricted-4", "restricted-5"]);
    grant_leases(&world, users).await;
    grant(&world, "pods", users, documented_rules()).await;
    let node = Node::of(&world);
    let (a, b) = leader_and_follower(&world, &node, users).await;
    drop(a.running);
    let end = end_after_renewal(&world).await;
    node.report(users[0], [&ended(end), &running()]).await;
    b.elected().await;
    assert_eq!(refused(&world, users).await, [""; 0]);
}

pub async fn candidate_without_permission_on_pods_waits_as_before() {
    let (world, users) = (Real::shared().await, ["restricted-6", "restricted-7"]);
    grant_leases(&world, users).await;
    let node = Node::of(&world);
    let a = replica(&world, users[0], &node.create(users[0]).await).await;
    a.elected().await;
    let b = replica(&world, users[1], &node.create(users[1]).await).await;
    until("it asks for the watch", async || refused(&world, users).await.contains(&"watch pods".into()))
        .await;
    let said = || b.candidate().trouble().is_some_and(|it| it.contains("grant it get and watch on pods"));
    until("it says so", async || said()).await;
    let end = end_after_renewal(&world).await;
    node.report(users[0], [&ended(end), &running()]).await;
    throughout(LOOK, "b follows", || b.candidate().holder().as_deref() == Some(users[0])).await;
    assert_eq!(within(PATIENCE, "the candidate stops", a.running.stop()).await, LeaseEnd::Released);
    b.elected().await;
}
