//! An API server with a fence, and the objects that the rows name.

use super::rows::Row;
use crate::{
    apiserver::{Cluster, assets, create, define_widgets},
    live::bodies::{body, object},
};
use futures_util::{StreamExt, stream};
use http::{Method, Request, header::CONTENT_TYPE};
use kube_client::{Client, client::Body};
use kube_leader_gate::{Policy, lease::LeaseName};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use test_support::kube_leader_gate_fence::{Fence, Writers};
use test_support::wait::until_told;
use tokio::time::timeout;

/// No row names it, so no row deletes its lease.
const NAMESPACE: &str = "of-the-election";
const PATIENCE: Duration = Duration::from_secs(30);
/// Admission comes first, and takes milliseconds.
const REFUSES: Duration = Duration::from_secs(10);
/// An exempted connection waits for a kubelet that is not there.
const CONNECTS: Duration = Duration::from_secs(2);

/// What the API server did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// The fence refused it.
    Refused,
    /// It was carried out.
    Passed,
    /// Another error came first or came later, so it does not show what the fence thinks.
    Unknown,
}

pub struct Stage {
    cluster: Cluster,
    admin: Client,
    /// It does not hold the lease.
    follower: Client,
}

impl Stage {
    pub async fn set() -> Self {
        let cluster = Cluster::start(assets()).await;
        let (admin, follower) = (cluster.client("admin"), cluster.client("candidate-1"));
        let stage = Self { cluster, admin, follower };
        let lease = json!({ "metadata": { "name": "fenced" }, "spec": { "holderIdentity": "candidate-0" } });
        create(&stage.admin, "/api/v1/namespaces", &object("", "namespaces", "", NAMESPACE)).await;
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
        create(&stage.admin, &leases, &lease).await;
        define_widgets(&stage.admin).await;
        stage
    }

    /// Creates the objects that the rows name, as far as their kinds are known. A row about anything else does not
    /// reach the fence.
    pub async fn furnish(&self, rows: &[Row]) {
        let readings: Vec<_> = rows.iter().map(Row::reading).collect();
        let namespaces: BTreeSet<_> = readings.iter().map(|it| it.namespace.as_str()).collect();
        for namespace in namespaces {
            let object = object("", "namespaces", "", namespace);
            self.try_create("/api/v1/namespaces", &object).await;
        }
        let places: BTreeSet<_> = readings
            .iter()
            .map(|it| (it.group.as_str(), it.resource.as_str(), it.namespace.as_str(), it.name.as_str()))
            .filter(|(.., name)| !name.is_empty())
            .collect();
        stream::iter(places)
            .for_each_concurrent(16, |(group, resource, namespace, name)| async move {
                let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
                let folder = match namespace {
                    "" => String::new(),
                    _ if resource == "namespaces" => String::new(),
                    namespace => format!("/namespaces/{namespace}"),
                };
                let object = object(group, resource, namespace, name);
                self.try_create(&format!("{root}{folder}/{resource}"), &object).await;
            })
            .await;
    }

    /// Whatever the answer is: not every name in the tables is one.
    async fn try_create(&self, path: &str, object: &Value) {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        if let Ok(request) = request.body(object.to_string().into_bytes()) {
            let _ = self.admin.request::<Value>(request).await;
        }
    }

    fn defined(policy: &Policy) -> Fence {
        let lease = LeaseName::new(NAMESPACE, "fenced").expect("a name");
        let writers = Writers::users(["candidate-0", "candidate-1"]).expect("users");
        Fence::new(&lease, &writers, policy).expect("a fence")
    }

    /// Puts the fence in force.
    pub async fn fence(&self, policy: &Policy) {
        Self::defined(policy).apply(&self.admin).await.expect("applied");
        self.wait_until("the fence is in force", true).await;
    }

    pub async fn unfence(&self, policy: &Policy) {
        Self::defined(policy).remove(&self.admin).await.expect("removed");
        self.wait_until("the fence is gone", false).await;
    }

    async fn wait_until(&self, what: &str, refuses: bool) {
        let pauses = Duration::from_millis(5);
        let user = json!({ "metadata": { "generateName": "x-" } }).to_string();
        until_told(PATIENCE, pauses, what, async || {
            let request = Request::post("/api/v1/namespaces/default/serviceaccounts");
            let request = request.header(CONTENT_TYPE, "application/json");
            let request = request.body(Body::from(user.clone().into_bytes())).expect("a request");
            (self.answer(request, REFUSES).await == Seen::Refused) == refuses
        })
        .await;
    }

    /// Sends the row with a body that would take effect. `passes` says that the gate lets it through.
    pub async fn send(&self, row: &Row, number: usize, passes: bool) -> Seen {
        let (mut parts, ()) = row.request().expect("it can be sent").into_parts();
        let body = body(&parts.method, &row.reading(), number).filter(|_| parts.method != Method::GET);
        let bytes = body.map_or_else(Vec::new, |body| {
            parts.headers.insert(CONTENT_TYPE, body.kind.parse().expect("a type"));
            body.text.into_bytes()
        });
        let patience = if passes { CONNECTS } else { REFUSES };
        self.answer(Request::from_parts(parts, Body::from(bytes)), patience).await
    }

    async fn answer(&self, request: Request<Body>, patience: Duration) -> Seen {
        let answer = timeout(patience, self.follower.send(request)).await;
        let Ok(Ok(answer)) = answer else { return Seen::Unknown };
        let status = answer.status();
        if status.as_u16() == 101 {
            return Seen::Passed;
        }
        let Ok(text) = answer.into_body().collect_bytes().await else { return Seen::Unknown };
        let text = String::from_utf8_lossy(&text);
        if status.is_success() {
            // A collection is judged object by object. An empty one shows nothing.
            return if text.contains("\"items\":[]") { Seen::Unknown } else { Seen::Passed };
        }
        let refused = text.contains("denied request: write attempt rejected as client is not leader");
        if refused { Seen::Refused } else { Seen::Unknown }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.cluster.kill();
    }
}
