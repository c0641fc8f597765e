//! The servers that scenarios run against.

use kube_client::Config;
use kube_leader_gate::testing::{ApiServer, Endpoint, WriteRecord};
use std::net::SocketAddr;

/// An API server, and a namespace in it that nobody else uses.
pub trait World {
    fn namespace(&self) -> &str;

    fn addr(&self) -> SocketAddr;

    /// The way in for this user: `admin`, or `candidate-0` to `candidate-31`.
    fn config(&self, user: &str) -> Config;

    /// The writes in the namespace, in the order in which they took effect, and at least those that were answered before.
    async fn writes(&self) -> Vec<WriteRecord>;

    /// How often this user has read the leases of the namespace with this verb.
    async fn reads(&self, user: &str, verb: &str) -> u64;

    /// The server answers nobody until [`Self::come_back`].
    async fn go_away(&self);

    async fn come_back(&self);

    /// The server ends without a word, and another one takes its place over the same data.
    async fn restart(&self);
}

/// The in-process API server, over real HTTP.
pub struct InProcess {
    server: ApiServer,
    endpoint: Endpoint,
}

impl InProcess {
    pub async fn new() -> Self {
        let server = ApiServer::new();
        let endpoint = server.serve().await.expect("a loopback port");
        Self { server, endpoint }
    }
}

impl World for InProcess {
    fn namespace(&self) -> &'static str {
        "default"
    }

    fn addr(&self) -> SocketAddr {
        self.endpoint.addr()
    }

    fn config(&self, user: &str) -> Config {
        self.endpoint.config(user)
    }

    async fn writes(&self) -> Vec<WriteRecord> {
        self.server.write_log()
    }

    async fn reads(&self, user: &str, verb: &str) -> u64 {
        self.server.reads(user, verb, "leases")
    }

    async fn go_away(&self) {
        self.endpoint.pause().await;
    }

    async fn come_back(&self) {
        self.endpoint.resume().await;
    }

    async fn restart(&self) {
        self.endpoint.pause().await;
        self.endpoint.resume().await;
    }
}
