//! A kube-apiserver and an etcd that belong to this process.

use super::{
    assets::Assets,
    audit::{Audit, AuditEvent},
    guard::{Folder, Guarded},
    server::{self, Setup},
    users,
};
use kube_client::{Client, Config};
use kube_leader_gate::testing::WriteRecord;
use serde_json::{Value, json};
use std::{
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep, timeout};

/// The start takes about 3 s on an idle machine.
const PATIENCE: Duration = Duration::from_secs(150);

#[derive(Debug)]
pub struct Cluster {
    assets: &'static Assets,
    setup: Setup,
    apiserver: Mutex<Guarded>,
    etcd: Mutex<Guarded>,
    folder: Folder,
}

/// A cluster that anything may refer to for ever. Its servers end with this value.
#[derive(Debug)]
pub struct Lasting(&'static Cluster);

/// Another kube-apiserver on the etcd of a [`Cluster`].
#[derive(Debug)]
pub struct Sibling {
    setup: Setup,
    apiserver: Mutex<Guarded>,
}

impl Lasting {
    /// Panics as [`Cluster::start`] does.
    pub async fn start(assets: &'static Assets) -> Self {
        Self(Box::leak(Box::new(Cluster::start(assets).await)))
    }

    pub fn cluster(&self) -> &'static Cluster {
        self.0
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Sibling {
    pub fn config(&self, user: &str) -> Config {
        users::config(&url(&self.setup), &self.setup.ca_der, user)
    }

    /// Freezes this API server, until [`thaw`](Self::thaw).
    pub fn freeze(&self) {
        lock(&self.apiserver).freeze();
    }

    pub fn thaw(&self) {
        lock(&self.apiserver).thaw();
    }
}

impl Cluster {
    /// Panics with the last lines of the servers' logs when they do not start.
    pub async fn start(assets: &'static Assets) -> Self {
        Self::try_start(assets).await.unwrap_or_else(|failure| panic!("no API server: {failure}"))
    }

    async fn try_start(assets: &'static Assets) -> Result<Self, String> {
        let folder = Folder::new().map_err(|error| format!("no folder for its data: {error}"))?;
        let setup = Setup::new(folder.path()).map_err(|error| format!("no certificates: {error}"))?;
        let run = |name: &str, program: io::Result<Guarded>| {
            program.map_err(|error| format!("{}: {error}", assets.binary(name).display()))
        };
        let etcd = Mutex::new(run("etcd", setup.etcd(assets))?);
        let apiserver = Mutex::new(run("kube-apiserver", setup.apiserver(assets))?);
        let cluster = Self { assets, setup, apiserver, etcd, folder };
        ready(&cluster.setup, &cluster.apiserver).await?;
        cluster.grant().await.map_err(|error| format!("{error}\n{}", cluster.setup.last_words()))?;
        Ok(cluster)
    }

    /// The server's address, for clients that trust [`ca`](Self::ca).
    pub fn url(&self) -> String {
        url(&self.setup)
    }

    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.setup.port).into()
    }

    pub fn ca(&self) -> PathBuf {
        self.setup.ca()
    }

    /// The folder of its data and logs, until this process ends.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn token(user: &str) -> String {
        users::check(user);
        users::token(user)
    }

    pub fn config(&self, user: &str) -> Config {
        users::check(user);
        users::config(&self.url(), &self.setup.ca_der, user)
    }

    pub fn client(&self, user: &str) -> Client {
        Client::try_from(self.config(user)).expect("a client")
    }

    /// The file of a kubeconfig. `server` is [`url`](Self::url), or a proxy in front of it on 127.0.0.1.
    pub fn kubeconfig(&self, user: &str, server: &str) -> PathBuf {
        users::check(user);
        let port = server.rsplit(':').next().unwrap_or_default();
        let file = self.folder().join(format!("{user}-{port}.kubeconfig"));
        let content = users::kubeconfig(server, &self.ca(), user).to_string();
        // Another test may be reading the file, so it is replaced whole.
        let mut new = NamedTempFile::new_in(self.folder()).expect("its folder is there");
        new.write_all(content.as_bytes()).expect("a new file");
        new.persist(&file).expect("its folder is there");
        file
    }

    /// A certificate of this candidate and its key, as PEM, which the server accepts for this time.
    pub fn certificate(&self, user: &str, lasts: Duration) -> [String; 2] {
        users::check(user);
        server::certificate(self.folder(), user, users::CANDIDATES, lasts)
            .expect("the authority's key is there")
    }

    pub fn kubectl(&self, user: &str) -> Command {
        let mut kubectl = Command::new(self.assets.binary("kubectl"));
        kubectl.arg("--kubeconfig").arg(self.kubeconfig(user, &self.url()));
        // Including kubectl's caches.
        kubectl.env("HOME", self.folder()).env_remove("KUBECONFIG");
        kubectl
    }

    /// Creates a namespace.
    pub async fn namespace(&self) -> String {
        let body = json!({ "metadata": { "generateName": "test-" } });
        let made = self.post("/api/v1/namespaces", &body).await.expect("a namespace");
        made["metadata"]["name"].as_str().expect("a name").to_owned()
    }

    pub fn audit(&self) -> Audit {
        Audit::open(&self.audit_log()).expect("the audit log")
    }

    /// The file with one audit event for each request.
    pub fn audit_log(&self) -> PathBuf {
        self.setup.audit_log()
    }

    /// Every request so far, including reads.
    pub fn requests(&self) -> Vec<AuditEvent> {
        self.audit().read()
    }

    /// Every write so far, for a [`Judge`](kube_leader_gate::testing::Judge).
    pub fn write_log(&self) -> Vec<WriteRecord> {
        self.requests().iter().filter_map(AuditEvent::write).collect()
    }

    /// Freezes the API server, until [`thaw`](Self::thaw).
    pub fn freeze(&self) {
        self.apiserver().freeze();
    }

    pub fn thaw(&self) {
        self.apiserver().thaw();
    }

    /// Kills the API server.
    pub fn kill(&self) {
        self.apiserver().kill();
    }

    /// Kills the API server, starts it again on the same port over the same data, and waits until it is ready.
    pub async fn restart(&self) {
        self.kill();
        *self.apiserver() = self.setup.apiserver(self.assets).expect("it started before");
        ready(&self.setup, &self.apiserver).await.unwrap_or_else(|error| panic!("no API server: {error}"));
    }

    /// Starts another API server on the same etcd, and waits until it is ready.
    pub async fn sibling(&self) -> Sibling {
        let setup = self.setup.beside().expect("a port");
        let apiserver = Mutex::new(setup.apiserver(self.assets).expect("it started before"));
        ready(&setup, &apiserver).await.unwrap_or_else(|error| panic!("no second API server: {error}"));
        Sibling { setup, apiserver }
    }

    async fn grant(&self) -> Result<(), kube_client::Error> {
        let binding = json!({
            "metadata": { "name": users::CANDIDATES },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": users::CANDIDATES }],
        });
        self.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.map(drop)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, kube_client::Error> {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        self.client("admin").request(request).await
    }

    fn apiserver(&self) -> MutexGuard<'_, Guarded> {
        lock(&self.apiserver)
    }

    /// Kills both servers.
    fn end(&self) {
        self.kill();
        lock(&self.etcd).kill();
    }
}

fn lock(program: &Mutex<Guarded>) -> MutexGuard<'_, Guarded> {
    program.lock().unwrap_or_else(PoisonError::into_inner)
}

fn url(setup: &Setup) -> String {
    format!("https://127.0.0.1:{}", setup.port)
}

/// Waits until the API server is ready and its audit log exists. From then on the log has every write.
async fn ready(setup: &Setup, apiserver: &Mutex<Guarded>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if !lock(apiserver).is_running() {
            return Err(format!("it ended by itself\n{}", setup.last_words()));
        }
        // A new client each time: it has no connection to the previous server.
        let config = users::config(&url(setup), &setup.ca_der, "admin");
        let client = Client::try_from(config).map_err(|error| error.to_string())?;
        let request = http::Request::get("/readyz").body(Vec::new()).expect("a request");
        let answer = timeout(Duration::from_secs(10), client.request_text(request)).await;
        if matches!(&answer, Ok(Ok(_))) && setup.audit_log().exists() {
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err(format!("not ready after {PATIENCE:?}\n{}", setup.last_words()))
}
