//! A namespace with a service account, pods of it, and a lease.

use crate::apiserver::{self, Cluster, Lasting};
use http::{Method, Request, header::CONTENT_TYPE};
use kube_client::{Client, Config, Error};
use kube_leader_gate::{
    Leadership, Policy, WriteGateLayer,
    leadership::{Grant, Grantor, Term},
    lease::LeaseName,
};
use serde_json::{Value, json};
use std::{sync::LazyLock, time::Duration};
use test_support::kube_leader_gate_fence::{Fence, Writers};

pub const LEASE: &str = "operator";
pub const ACCOUNT: &str = "operator";

pub struct Ground {
    pub cluster: &'static Cluster,
    pub namespace: String,
    pub admin: Client,
    _own: Option<Lasting>,
}

impl Ground {
    pub async fn new() -> Self {
        Self::on(apiserver::shared().await, None).await
    }

    /// On an API server of its own, which ends with this value.
    pub async fn alone() -> Self {
        let own = Lasting::start(apiserver::assets()).await;
        Self::on(own.cluster(), Some(own)).await
    }

    async fn on(cluster: &'static Cluster, own: Option<Lasting>) -> Self {
        let (namespace, admin) = (cluster.namespace().await, cluster.client("admin"));
        let ground = Self { cluster, namespace, admin, _own: own };
        let account = json!({ "metadata": { "name": ACCOUNT } });
        ground.post("serviceaccounts", &account).await;
        // The account may do everything, but not impersonate.
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
        ground.grant("all", json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": verbs }])).await;
        ground
    }

    /// Gives the account these permissions too.
    pub async fn grant(&self, name: &str, rules: Value) {
        self.grant_in(None, name, rules).await;
    }

    /// The same in one namespace.
    pub async fn grant_in(&self, namespace: Option<&str>, name: &str, rules: Value) {
        let name = format!("{name}-{}", self.namespace);
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace }],
        });
        let bindings = match namespace {
            Some(namespace) => format!("namespaces/{namespace}/rolebindings"),
            None => "clusterrolebindings".to_owned(),
        };
        for (resource, object) in [("clusterroles", role), (&*bindings, binding)] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{resource}");
            send(&self.admin, Method::POST, &path, Some(&object)).await.expect("granted");
        }
    }

    pub fn lease(&self) -> LeaseName {
        LeaseName::new(&self.namespace, LEASE).expect("a name")
    }

    pub fn writers(&self) -> Writers {
        Writers::service_account(&self.namespace, ACCOUNT).expect("an account")
    }

    /// A fence around the pods of the account.
    pub fn fence(&self, policy: &Policy) -> Fence {
        Fence::new(&self.lease(), &self.writers(), policy).expect("a fence")
    }

    /// Applies it, and waits until the API server refuses a pod that holds nothing.
    pub async fn fenced(&self, fence: &Fence) {
        self.hold("no-pod").await;
        fence.apply(&self.admin).await.expect("applied");
        let stranger = self.pod("stranger").await;
        crate::support::until("the fence is in force", async || refused(&self.touch(&stranger).await)).await;
    }

    /// A token of the account: of a pod of this name, which it creates, or of no pod.
    pub async fn token(&self, pod: Option<&str>) -> String {
        let mut spec = json!({ "audiences": [] });
        if let Some(name) = pod {
            let container = json!({ "name": "c", "image": "i" });
            let pod = json!({ "metadata": { "name": name },
                              "spec": { "serviceAccountName": ACCOUNT, "containers": [container] } });
            let uid = self.post("pods", &pod).await["metadata"]["uid"].take();
            spec["boundObjectRef"] = json!({ "kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid });
        }
        let token = self.post(&format!("serviceaccounts/{ACCOUNT}/token"), &json!({ "spec": spec })).await;
        token["status"]["token"].as_str().expect("a token").to_owned()
    }

    /// The configuration of a pod, with a token that names it.
    pub async fn config(&self, pod: &str) -> Config {
        self.config_with(self.token(Some(pod)).await)
    }

    /// The configuration with a token of the account that names no pod.
    pub async fn podless_config(&self) -> Config {
        self.config_with(self.token(None).await)
    }

    fn config_with(&self, token: String) -> Config {
        let mut config = self.cluster.config("admin");
        config.auth_info.token = Some(token.into());
        config.default_namespace.clone_from(&self.namespace);
        config
    }

    pub async fn pod(&self, name: &str) -> Client {
        Client::try_from(self.config(name).await).expect("a client")
    }

    /// Writes this holder into the lease.
    pub async fn hold(&self, holder: &str) {
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 600, "leaseTransitions": 1 });
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                            "metadata": { "name": LEASE }, "spec": spec });
        let path = format!("{}?fieldManager=test&force=true", self.lease_path());
        send(&self.admin, Method::PATCH, &path, Some(&lease)).await.expect("held");
    }

    pub async fn delete_lease(&self) {
        send(&self.admin, Method::DELETE, &self.lease_path(), None).await.expect("deleted");
    }

    pub fn lease_path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{LEASE}", self.namespace)
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// A write: it creates a map.
    pub async fn touch(&self, client: &Client) -> Result<Value, Error> {
        let map = json!({ "metadata": { "generateName": "map-" } });
        send(client, Method::POST, &self.path("configmaps"), Some(&map)).await
    }

    pub async fn post(&self, rest: &str, body: &Value) -> Value {
        let path = self.path(rest);
        send(&self.admin, Method::POST, &path, Some(body))
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

pub async fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Error> {
    let kind = if method == Method::PATCH { "application/apply-patch+yaml" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind);
    let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    client.request(request.body(body).expect("a request")).await
}

/// The API server's message, if its fence refused the request.
pub fn refusal(answer: &Result<Value, Error>) -> Option<&str> {
    match answer {
        Err(Error::Api(status)) if status.code == 403 => {
            let marker = "denied request: write attempt rejected as client is not leader";
            status.message.contains(marker).then_some(&status.message)
        }
        _ => None,
    }
}

pub fn refused(answer: &Result<Value, Error>) -> bool {
    refusal(answer).is_some()
}

/// A client whose gate is open, and which recognises the refusals of `fence`.
pub fn recognising(config: Config, fence: &Fence) -> Client {
    static LEADS: LazyLock<(Leadership, Grant)> = LazyLock::new(|| {
        let grantor = Box::leak(Box::new(Grantor::new()));
        let deadline = grantor.now().saturating_add(Duration::from_secs(100_000));
        (grantor.leadership(), grantor.grant(Term::new("uid", 1), deadline).expect("in time"))
    });
    let builder = kube_client::client::ClientBuilder::try_from(config).expect("a client");
    builder.with_layer(&WriteGateLayer::new(LEADS.0.clone())).with_layer(&fence.refusals()).build()
}

impl Ground {
    /// Creates the lease without any field.
    pub async fn post_lease(&self) {
        let lease = json!({ "metadata": { "name": LEASE } });
        let leases = self.lease_path().replace(&format!("/{LEASE}"), "");
        send(&self.admin, Method::POST, &leases, Some(&lease)).await.expect("created");
    }
}
