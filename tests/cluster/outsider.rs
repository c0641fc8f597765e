//! A client with all permissions and no part in the election, like `kubectl edit`, another elector or a webhook.

use crate::world::World;
use http::{Method, Request, header::CONTENT_TYPE};
use jiff::{SignedDuration, Timestamp};
use kube_client::Client;
use serde_json::{Value, json};

pub struct Outsider {
    client: Client,
    leases: String,
    name: String,
}

impl Outsider {
    /// A client for the lease `operator`.
    pub fn of(world: &impl World) -> Self {
        Self::at(world, "operator")
    }

    pub fn at(world: &impl World, lease: &str) -> Self {
        let client = world.client("admin");
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", world.namespace());
        Self { client, leases, name: lease.to_owned() }
    }

    /// The lease, if there is one.
    pub async fn get(&self) -> Option<Value> {
        match self.send(Method::GET, &self.path(), None).await {
            Ok(lease) => Some(lease),
            Err(kube_client::Error::Api(status)) if status.is_not_found() => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn spec(&self) -> Value {
        self.get().await.expect("the lease")["spec"].take()
    }

    pub async fn holder(&self) -> String {
        let lease = self.get().await.unwrap_or_default();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// Creates the lease with these fields.
    pub async fn create(&self, fields: Value) -> Value {
        let mut lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease" });
        for (field, value) in fields.as_object().expect("fields") {
            lease[field] = value.clone();
        }
        lease["metadata"]["name"] = self.name.clone().into();
        self.send(Method::POST, &self.leases, Some(&lease)).await.expect("created")
    }

    /// Creates the lease with a holder that never renews it.
    pub async fn create_held(&self, holder: &str, seconds: u64, renewed: &str) {
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3,
                           "acquireTime": renewed, "renewTime": renewed });
        self.create(json!({ "spec": spec })).await;
    }

    /// Changes the lease by a merge patch.
    pub async fn patch(&self, patch: Value) -> Value {
        self.send(Method::PATCH, &self.path(), Some(&patch)).await.expect("patched")
    }

    pub async fn delete(&self) {
        self.send(Method::DELETE, &self.path(), None).await.expect("deleted");
    }

    /// Overwrites the holder, as `kubectl edit` would.
    pub async fn steal(&self) {
        let now = micro_time(SignedDuration::ZERO);
        let spec = json!({ "holderIdentity": "outsider", "acquireTime": now, "renewTime": now, "leaseTransitions": 7 });
        self.patch(json!({ "spec": spec })).await;
    }

    fn path(&self) -> String {
        format!("{}/{}", self.leases, self.name)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube_client::Error> {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind).body(body);
        self.client.request(request.expect("a request")).await
    }
}

/// The time of a clock that is ahead by this much, as the API writes it.
pub fn micro_time(ahead: SignedDuration) -> String {
    (Timestamp::now() + ahead).strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
