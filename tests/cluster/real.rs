//! The real kube-apiserver as a world. Its audit log says which user sent which request.

use crate::{
    apiserver::{self, Audit, AuditEvent, Cluster},
    landed::settle,
    line::Line,
    support::PATIENCE,
    wire::{Listener, Server},
    world::{Joined, World},
};
use kube_client::{Client, Config};
use kube_leader_gate::{election::ElectionBuilder, lease::LeasePool, testing::WriteRecord};
use serde_json::{Value, json};
use std::{
    borrow::Borrow,
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};

/// The tests' common server, by reference, or one of its own.
pub struct Real<C> {
    pub cluster: C,
    namespace: String,
    log: Arc<Mutex<Log>>,
}

/// The audit log, read once for all, by namespace.
struct Log {
    audit: Audit,
    events: HashMap<String, Vec<AuditEvent>>,
}

impl Real<&'static Cluster> {
    pub async fn shared() -> Self {
        static LOG: OnceLock<Arc<Mutex<Log>>> = OnceLock::new();
        Self::with(apiserver::shared().await, &LOG).await
    }

    /// On a server that the test shares with no other.
    pub async fn on(cluster: &'static Cluster) -> Self {
        Self { cluster, namespace: cluster.namespace().await, log: Log::of(cluster) }
    }

    async fn with(cluster: &'static Cluster, log: &'static OnceLock<Arc<Mutex<Log>>>) -> Self {
        let log = log.get_or_init(|| Log::of(cluster)).clone();
        Self { cluster, namespace: cluster.namespace().await, log }
    }
}

impl Real<Cluster> {
    /// A server that a test may stop.
    pub async fn alone() -> Self {
        let cluster = Cluster::start(apiserver::assets()).await;
        let (namespace, log) = (cluster.namespace().await, Log::of(&cluster));
        Self { cluster, namespace, log }
    }
}

impl<C: Borrow<Cluster>> Real<C> {
    /// This user's configuration, without any line.
    pub fn config(&self, user: &str) -> Config {
        let mut config = self.cluster.borrow().config(user);
        config.default_namespace.clone_from(&self.namespace);
        config
    }

    /// A line, and this user's configuration through it.
    async fn line(&self, user: &str) -> (Line, Config) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let mut config = self.config(user);
        let addr = listener.local_addr().expect("its address");
        config.cluster_url = format!("https://{addr}").parse().expect("a URL");
        (Line::new(Listener::Port(listener), Server::Port(self.cluster.borrow().addr())), config)
    }

    /// Whether RBAC lets this user do something in the namespace: fields of `resourceAttributes`.
    pub async fn allows(&self, user: &str, mut what: Value) -> bool {
        what["namespace"] = self.namespace.as_str().into();
        let review = json!({ "spec": { "user": user, "resourceAttributes": what } }).to_string();
        let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews");
        let request = request.header("content-type", "application/json").body(review.into_bytes());
        let client = self.cluster.borrow().client("admin");
        let answer: Value = client.request(request.expect("a request")).await.expect("an answer");
        answer["status"]["allowed"] == true
    }

    /// The requests in the namespace, including at least what was answered a while before this call, and the write that made
    /// each lease what it is. The server logs a request after its answer, and not in the order of the answers.
    pub async fn requests(&self) -> Vec<AuditEvent> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace);
        let client = self.cluster.borrow().client("admin");
        let logged = async {
            loop {
                let marker = format!("marker={}", fastrand::u64(..));
                let request =
                    http::Request::get(format!("{path}?{marker}")).body(Vec::new()).expect("a request");
                let leases: Value = client.request(request).await.expect("an answer");
                let mut events =
                    self.log.lock().unwrap_or_else(PoisonError::into_inner).of_namespace(&self.namespace);
                let is_marked = events.iter().rev().any(|event| event.request_uri.ends_with(&marker));
                if is_marked && settle(&mut events, leases["items"].as_array().expect("a list")) {
                    return events;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, logged).await.expect("the log keeps up")
    }
}

impl<C: Borrow<Cluster>> World for Real<C> {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn client(&self, user: &str) -> Client {
        Client::try_from(self.config(user)).expect("a client")
    }

    fn pool(&self, user: &str) -> LeasePool {
        LeasePool::new(&self.config(user)).expect("a client")
    }

    async fn join(&self, user: &str, builder: ElectionBuilder) -> Joined {
        let (line, config) = self.line(user).await;
        let election = builder.build(&config).expect("a valid election");
        let (work, config) = self.line(user).await;
        let client = election.client(&config).expect("a client");
        Joined { election, line, client, work }
    }

    async fn writes(&self) -> Vec<WriteRecord> {
        self.requests().await.iter().filter_map(AuditEvent::write).collect()
    }

    async fn reads(&self, user: &str, verb: &str) -> u64 {
        let counts = |event: &&AuditEvent| {
            // The log shows a watch when it begins.
            let stage = if verb == "watch" && event.response_status.code == 200 {
                "ResponseStarted"
            } else {
                "ResponseComplete"
            };
            event.user.username == user
                && event.verb == verb
                && event.object_ref.resource == "leases"
                && event.stage == stage
        };
        self.requests().await.iter().filter(counts).map(|_| 1).sum()
    }

    async fn go_away(&self) {
        self.cluster.borrow().freeze();
    }

    async fn come_back(&self) {
        self.cluster.borrow().thaw();
    }

    async fn restart(&self) {
        self.cluster.borrow().restart().await;
    }
}

impl Log {
    fn of(cluster: &Cluster) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { audit: cluster.audit(), events: HashMap::new() }))
    }

    fn of_namespace(&mut self, namespace: &str) -> Vec<AuditEvent> {
        for event in self.audit.read() {
            if let Some(namespace) = &event.object_ref.namespace {
                self.events.entry(namespace.clone()).or_default().push(event);
            }
        }
        self.events.get(namespace).cloned().unwrap_or_default()
    }
}
