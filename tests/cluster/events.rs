//! Kubernetes Events, as a real API server accepts them and kubectl shows them.

use crate::{
    apiserver::Cluster,
    candidate::{Contender, builder, start},
    outsider::Outsider,
    real::Real,
    support::{PATIENCE, until, within},
    world::World,
};
use http::{Request, header::CONTENT_TYPE};
use kube_client::Client;
use kube_leader_gate::election::LeaseEnd;
use serde_json::{Value, json};

type Server = Real<&'static Cluster>;

async fn reporting(world: &Server, user: &str) -> Contender {
    let client = Client::try_from(world.config(user)).expect("a client");
    let candidate = start(world, user, builder(world, user).events(client)).await;
    candidate.elected().await;
    candidate
}

async fn post(world: &Server, path: &str, body: Value) {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{path}", world.namespace());
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(body.to_string().into_bytes()).expect("a request");
    world.cluster.client("admin").request::<Value>(request).await.expect("an answer");
}

/// Grants this user what a leader needs, and these verbs on events.
async fn grant(world: &Server, user: &str, verbs: &[&str]) {
    let mut rules =
        vec![json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"] })];
    if !verbs.is_empty() {
        rules.push(json!({ "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": verbs }));
    }
    post(world, "roles", json!({ "metadata": { "name": "events" }, "rules": rules })).await;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": "events" },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": "events" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    });
    post(world, "rolebindings", binding).await;
}

/// Another client takes the lease and releases it. Then the candidate leads again.
async fn lead_again(world: &Server, contender: &Contender) {
    let outsider = Outsider::of(world);
    outsider.steal().await;
    until("the candidate loses the lease", async || !contender.candidate().is_leader()).await;
    outsider.patch(json!({ "spec": { "holderIdentity": "" } })).await;
    contender.elected().await;
}

/// What kubectl shows, oldest first.
fn shown(world: &Server) -> Vec<String> {
    let columns = "custom-columns=:.type,:.reason,:.involvedObject.name,:.message";
    let mut kubectl = world.cluster.kubectl("admin");
    kubectl.args(["get", "events", "--namespace", world.namespace(), "--no-headers", "--output", columns]);
    let said = kubectl.output().expect("kubectl");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    String::from_utf8_lossy(&said.stdout).lines().map(words).collect()
}

/// How often the server answered this user's events with this code.
async fn answered(world: &Server, user: &str, code: u16) -> usize {
    let events = world.requests().await;
    let counts = |event: &&crate::apiserver::AuditEvent| {
        event.user.username == user
            && event.object_ref.resource == "events"
            && event.stage == "ResponseComplete"
            && event.response_status.code == code
    };
    events.iter().filter(counts).count()
}

pub async fn kubectl_events_show_each_gain_and_loss() {
    let world = Real::shared().await;
    grant(&world, "restricted-2", &["create", "patch"]).await;
    let a = reporting(&world, "restricted-2").await;
    let uid = a.candidate().term().expect("a term").lease_uid().to_owned();
    until("the event is written", async || !shown(&world).is_empty()).await;
    lead_again(&world, &a).await;
    assert_eq!(within(PATIENCE, "the candidate stops", a.running.stop()).await, LeaseEnd::Released);
    let lines = ["became leader", "stopped leading"]
        .map(|what| format!("Normal LeaderElection operator restricted-2 {what}"));
    assert_eq!(shown(&world), lines);
    // kubectl's own way to list the events of an object.
    let mut kubectl = world.cluster.kubectl("admin");
    kubectl.args(["events", "--namespace", world.namespace(), "--for", "lease/operator", "--no-headers"]);
    let said = String::from_utf8(kubectl.output().expect("kubectl").stdout).expect("text");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.lines().all(|line| line.contains("Lease/operator")), "{said}");
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", world.namespace());
    let request = Request::get(path).body(Vec::new()).expect("a request");
    let list: Value = world.cluster.client("admin").request(request).await.expect("a list");
    for event in list["items"].as_array().expect("items") {
        assert_eq!(event["series"]["count"], 2, "{event}");
        assert_eq!(event["regarding"]["uid"], *uid);
        assert_eq!(
            (&event["reportingController"], &event["reportingInstance"]),
            (&json!("operator"), &json!("restricted-2"))
        );
    }
}

pub async fn candidate_leads_without_permission_to_write_events() {
    let world = Real::shared().await;
    grant(&world, "restricted-3", &[]).await;
    let a = reporting(&world, "restricted-3").await;
    until("it tries once", async || answered(&world, "restricted-3", 403).await == 1).await;
    a.renews(3).await;
    assert_eq!(answered(&world, "restricted-3", 403).await, 1, "it does not insist");
    assert_eq!(within(PATIENCE, "the candidate stops", a.running.stop()).await, LeaseEnd::Released);
    assert_eq!(shown(&world), [""; 0]);
}

pub async fn candidate_leads_without_permission_to_patch_events() {
    let world = Real::shared().await;
    grant(&world, "restricted-8", &["create"]).await;
    let a = reporting(&world, "restricted-8").await;
    lead_again(&world, &a).await;
    until("it tries the repetition once", async || answered(&world, "restricted-8", 403).await == 1).await;
    a.renews(3).await;
    assert_eq!(answered(&world, "restricted-8", 403).await, 1, "it does not insist");
    assert_eq!(within(PATIENCE, "the candidate stops", a.running.stop()).await, LeaseEnd::Released);
    let lines = ["became leader", "stopped leading"]
        .map(|what| format!("Normal LeaderElection operator restricted-8 {what}"));
    assert_eq!(shown(&world), lines);
}
