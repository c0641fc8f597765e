//! The Role of `docs/PRODUCTION.md` is sufficient, and needs all its verbs.

use crate::{
    apiserver::{AuditEvent, Cluster},
    candidate::{Contender, builder_for, patient, start, timing},
    outsider::Outsider,
    real::Real,
    support::{PATIENCE, release, throughout, until, within},
    world::World,
};
use http::{Request, header::CONTENT_TYPE};
use kube_leader_gate::{
    LeaseTiming,
    election::LeaseEnd,
    health::Health,
    testing::{Judge, Verdict},
};
use serde_json::{Value, json};
use std::time::Duration;

const GUIDE: &str = include_str!("../../docs/PRODUCTION.md");
const LEASE: &str = "my-controller";
const USERS: [&str; 2] = ["restricted-0", "restricted-1"];

/// The manifest, in this namespace.
fn manifest(namespace: &str) -> String {
    let role = GUIDE.split("```").find(|block| block.contains("kind: Role\n")).expect("a Role in the guide");
    let (kind, role) = role.split_once('\n').expect("a block of lines");
    assert_eq!(kind, "yaml");
    role.replace("my-namespace", namespace)
}

async fn send(world: &Real<&'static Cluster>, request: http::request::Builder, body: String) -> Value {
    let request = request.body(body.into_bytes()).expect("a request");
    world.cluster.client("admin").request(request).await.expect("an answer")
}

/// Grants the Role to both users without one verb. Returns once it is in force.
async fn grant(world: &Real<&'static Cluster>, but: Option<&str>) {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", world.namespace());
    let post = |path: String, kind: &str| Request::post(path).header(CONTENT_TYPE, kind);
    let request = post(format!("{rbac}/roles"), "application/yaml");
    let mut role = send(world, request, manifest(world.namespace())).await;
    let mut granted = Vec::new();
    let rules = role["rules"].as_array_mut().expect("rules");
    for verbs in rules.iter_mut().filter_map(|rule| rule["verbs"].as_array_mut()) {
        verbs.retain(|verb| verb.as_str() != but);
        granted.extend(verbs.iter().cloned());
    }
    assert_eq!(granted.len(), if but.is_some() { 3 } else { 4 }, "{granted:?}");
    rules.retain(|rule| rule["verbs"] != json!([]));
    let name = role["metadata"]["name"].as_str().expect("a name").to_owned();
    let put = Request::put(format!("{rbac}/roles/{name}")).header(CONTENT_TYPE, "application/json");
    send(world, put, role.to_string()).await;
    let subjects =
        USERS.map(|user| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }));
    let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
    let binding = json!({ "metadata": { "name": name }, "roleRef": reference, "subjects": subjects });
    send(world, post(format!("{rbac}/rolebindings"), "application/json"), binding.to_string()).await;
    for verb in granted {
        until("it is in force", async || is_allowed(world, &verb).await).await;
    }
}

async fn is_allowed(world: &Real<&'static Cluster>, verb: &Value) -> bool {
    let mut what = json!({ "group": "coordination.k8s.io", "resource": "leases", "verb": verb });
    if verb != "create" {
        what["name"] = LEASE.into();
    }
    world.allows(USERS[1], what).await
}

async fn candidate(world: &impl World, user: &str, timing: LeaseTiming) -> Contender {
    start(world, user, builder_for(world, user, LEASE).timing(timing)).await
}

/// The requests of both users in the namespace that the server refused.
async fn refused(world: &Real<&'static Cluster>) -> Vec<AuditEvent> {
    let mut events = world.requests().await;
    events.retain(|event| {
        USERS.contains(&&*event.user.username)
            && [401, 403].contains(&event.response_status.code)
            && event.stage == "ResponseComplete"
    });
    events
}

async fn refused_verbs(world: &Real<&'static Cluster>) -> Vec<String> {
    refused(world).await.into_iter().map(|event| event.verb).collect()
}

async fn judged(world: &impl World) -> Verdict {
    Judge::new(world.namespace(), LEASE, USERS).verdict(&world.writes().await)
}

pub async fn documented_role_is_sufficient() {
    let world = Real::shared().await;
    grant(&world, None).await;
    let a = candidate(&world, USERS[0], timing()).await;
    a.elected().await;
    let b = candidate(&world, USERS[1], timing()).await;
    until("b knows a", async || b.candidate().holder().is_some()).await;
    until("b watches", async || world.reads(USERS[1], "watch").await > 0).await;
    a.renews(2).await;
    assert_eq!(within(PATIENCE, "the candidate stops", a.running.stop()).await, LeaseEnd::Released);
    b.elected().await;
    b.renews(1).await;
    assert_eq!(refused_verbs(&world).await, [""; 0]);
    assert_eq!(judged(&world).await.handovers().len(), 1);
}

/// The Role allows watching each lease by name, and so not the whole namespace.
pub async fn forbidden_namespace_watch_leads_to_single_watches() {
    let world = Real::shared().await;
    grant(&world, None).await;
    let start = |user| {
        let pool = world.pool(user).share_watches();
        let builder = builder_for(&world, user, LEASE).timing(patient());
        builder.build_in(&pool).expect("a valid election").start()
    };
    let (a, b) = (start(USERS[0]), start(USERS[1]));
    until("one candidate leads", async || a.candidate().is_leader() || b.candidate().is_leader()).await;
    let (leader, follower) = if a.candidate().is_leader() { (a, b) } else { (b, a) };
    until("each watches for itself", async || {
        let requests = world.requests().await;
        let watches = |user: &&str| {
            let is_his = |it: &AuditEvent| it.user.username == *user && it.verb == "watch";
            requests.iter().any(|it| is_his(it) && it.response_status.code == 200)
        };
        USERS[..2].iter().all(watches)
    })
    .await;
    leader.stop().await;
    within(PATIENCE, "the other leads", follower.candidate().elected()).await;
    assert!(refused_verbs(&world).await.iter().all(|it| it == "watch"));
    let handovers = judged(&world).await.handovers();
    assert!(handovers.len() == 1 && handovers[0] < world.slack(), "{handovers:?}");
}

/// The candidate also hardly asks for the watch any more.
pub async fn candidate_without_watch_permission_polls() {
    let world = Real::shared().await;
    grant(&world, Some("watch")).await;
    let a = candidate(&world, USERS[0], timing()).await;
    a.elected().await;
    let b = candidate(&world, USERS[1], timing()).await;
    until("b knows a", async || b.candidate().holder().is_some()).await;
    a.renews(10).await;
    assert!(!b.candidate().is_leader());
    a.running.stop().await;
    b.elected().await;
    assert_eq!(judged(&world).await.handovers().len(), 1);
    let refused = refused(&world).await;
    assert!(refused.iter().all(|it| it.verb == "watch"), "{refused:?}");
    for user in USERS {
        let tries = refused.iter().filter(|it| it.user.username == user);
        let tries: Vec<_> = tries.map(|it| it.request_received_timestamp).collect();
        // The first pause is a quarter of the retry period. Each one is twice as long, and half of it is random.
        let mut least = timing().retry_period() / 8;
        assert!(tries.len() > 2, "{user}: {tries:?}");
        for pair in tries.windows(2) {
            assert!(pair[1].duration_since(pair[0]).unsigned_abs() >= least, "{user}: {tries:?}");
            least *= 2;
        }
    }
}

pub async fn candidate_without_create_needs_an_existing_lease() {
    let world = Real::shared().await;
    grant(&world, Some("create")).await;
    let a = candidate(&world, USERS[0], timing()).await;
    until("it has tried twice", async || refused(&world).await.len() >= 2).await;
    assert!(!a.candidate().is_leader());
    Outsider::at(&world, LEASE).create(json!({})).await;
    a.elected().await;
    assert!(refused(&world).await.iter().all(|it| it.verb == "create"));
}

pub async fn candidate_without_get_creates_no_lease() {
    let world = Real::shared().await;
    grant(&world, Some("get")).await;
    let a = candidate(&world, USERS[0], timing()).await;
    until("it has tried twice", async || refused(&world).await.len() >= 2).await;
    throughout(timing().retry_period(), "it does not lead", || !a.candidate().is_leader()).await;
    assert!(refused(&world).await.iter().all(|it| it.verb == "get"));
    assert_eq!(judged(&world).await.handovers().len(), 0);
}

/// The candidate can create the lease, but neither renew nor release it.
pub async fn candidate_without_update_leads_one_short_term() {
    let world = Real::shared().await;
    grant(&world, Some("update")).await;
    let a = candidate(&world, USERS[0], timing()).await;
    a.elected().await;
    until("the gate closes", async || !a.candidate().can_write()).await;
    throughout(timing().lease_duration(), "the candidate no longer leads", || !a.candidate().is_leader())
        .await;
    assert_eq!(a.running.stop().await, LeaseEnd::LeftToExpire);
    assert!(refused(&world).await.iter().all(|it| it.verb == "update"));
    assert!(release(&world, USERS[0]).await.is_none());
}

/// A rollout waits at such a replica. A restart would not help it.
pub async fn replica_without_role_is_unready_until_granted() {
    let world = Real::shared().await;
    let a = candidate(&world, USERS[0], timing()).await;
    let health = Health::new(a.candidate().clone(), Duration::from_secs(20));
    let unready = || {
        assert_eq!(health.answer("/livez").status, 200);
        let answer = health.answer("/readyz");
        assert_eq!(answer.status, 503, "{}", answer.body);
        answer.body
    };
    let mut why = String::new();
    until("it says why", async || {
        why = unready();
        why.contains("forbidden")
    })
    .await;
    assert!(why.starts_with("the election is in trouble: lease calls fail: read: forbidden: 403: "), "{why}");
    assert!(why.contains(USERS[0]) && why.contains("grant it get, create, update and watch"), "{why}");
    let before = refused(&world).await.len();
    until("it has tried twice more", async || {
        unready();
        refused(&world).await.len() >= before + 2
    })
    .await;
    grant(&world, None).await;
    until("it is ready", async || {
        assert_eq!(health.answer("/livez").status, 200);
        health.answer("/readyz").status == 200
    })
    .await;
    a.elected().await;
    a.renews(1).await;
    assert_eq!((health.answer("/readyz").status, &*health.answer("/readyz").body), (200, "ok\n"));
}
