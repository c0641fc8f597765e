//! Pods, and the controller and the kubelet that write them.

use crate::{early::replicas::Server, outsider::Outsider, support::until, world::World};
use http::{Method, Request, header::CONTENT_TYPE};
use jiff::Timestamp;
use kube_client::Client;
use serde_json::{Value, json};

/// Writes the pods and their status, as a controller and a kubelet do.
pub struct Node {
    client: Client,
    pods: String,
}

impl Node {
    pub fn of(world: &Server) -> Self {
        let pods = format!("/api/v1/namespaces/{}/pods", world.namespace());
        Self { client: world.client("admin"), pods }
    }

    pub async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Value {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.pods));
        let request =
            request.header(CONTENT_TYPE, kind).body(body.to_string().into_bytes()).expect("a request");
        self.client.request(request).await.expect("an answer")
    }

    /// Creates a pod whose containers run. Returns its uid.
    pub async fn create(&self, name: &str) -> String {
        let container = |name: &str| json!({ "name": name, "image": "none" });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
            "spec": { "nodeName": "node", "containers": [container("manager"), container("proxy")] },
        });
        let pod = self.send(Method::POST, "", "application/json", &pod).await;
        self.report(name, [&running(), &running()]).await;
        pod["metadata"]["uid"].as_str().expect("a uid").to_owned()
    }

    /// Reports the states of the containers `manager` and `proxy`.
    pub async fn report(&self, name: &str, states: [&Value; 2]) {
        let reports = ["manager", "proxy"].iter().zip(states).map(|(name, state)| {
            json!({ "name": name, "image": "none", "imageID": "", "ready": false, "restartCount": 0,
                    "state": state["now"], "lastState": state["before"] })
        });
        let reports: Vec<_> = reports.collect();
        self.patch(name, &json!({ "status": { "containerStatuses": reports } })).await;
    }

    pub async fn patch(&self, name: &str, status: &Value) {
        self.send(Method::PATCH, &format!("/{name}/status"), "application/merge-patch+json", status).await;
    }

    /// Deletes the pod by force: the API server forgets it at once.
    pub async fn forget(&self, name: &str) {
        let now = json!({ "gracePeriodSeconds": 0 });
        self.send(Method::DELETE, &format!("/{name}"), "application/json", &now).await;
    }
}

pub fn running() -> Value {
    json!({ "now": { "running": {} }, "before": {} })
}

pub fn terminated(at: Timestamp) -> Value {
    let at = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "finishedAt": at } })
}

pub fn ended(at: Timestamp) -> Value {
    json!({ "now": terminated(at), "before": {} })
}

/// When the holder last renewed, by its own clock.
pub async fn renewed(world: &Server) -> Timestamp {
    Outsider::of(world).spec().await["renewTime"].as_str().expect("a time").parse().expect("a time")
}

/// The whole second of now, once it is later than the last renewal: an earlier end would prove nothing.
pub async fn end_after_renewal(world: &Server) -> Timestamp {
    let renewed = renewed(world).await;
    let second = || Timestamp::from_second(Timestamp::now().as_second()).expect("a time");
    until("the second of the renewal is over", async || second() > renewed).await;
    second()
}
