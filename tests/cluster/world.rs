//! The servers that scenarios run against.

use crate::{
    line::Line,
    pipe,
    wire::{InMemory, Listener, Server},
};
use hyper_util::rt::TokioExecutor;
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::ElectionBuilder,
    lease::LeasePool,
    testing::{ApiServer, TokioClock, WriteRecord},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tower::Layer;

/// An API server, and a namespace in it that no other test uses. Users are `admin`, and `candidate-0` to
/// `candidate-31`.
pub trait World {
    fn namespace(&self) -> &str;

    /// A client of this user, without any line.
    fn client(&self, user: &str) -> Client;

    /// What the elections of one process share, without any line.
    fn pool(&self, user: &str) -> LeasePool;

    /// On the clock of this world. For a real server that is the machine's.
    fn on_clock(&self, builder: ElectionBuilder) -> ElectionBuilder {
        builder
    }

    /// What the machine may add to some milliseconds. In real time that is long, and still shorter than the retry period
    /// of [`patient`](crate::candidate::patient): a poll does not explain what happens within it.
    fn slack(&self) -> Duration {
        Duration::from_secs(15)
    }

    /// An election of this user.
    async fn join(&self, user: &str, builder: ElectionBuilder) -> Joined;

    /// The writes in the namespace, in the order of their effect, including at least those that were answered before
    /// this call.
    async fn writes(&self) -> Vec<WriteRecord>;

    /// How often this user has read the leases of the namespace with this verb.
    async fn reads(&self, user: &str, verb: &str) -> u64;

    /// The server answers no request until [`Self::come_back`].
    async fn go_away(&self);

    async fn come_back(&self);

    /// The server crashes, and another one takes its place over the same data.
    async fn restart(&self);
}

/// An election with a line to the server, and a workload's client behind its gate with another one.
pub struct Joined {
    pub election: Election,
    pub line: Line,
    pub client: Client,
    pub work: Line,
}

/// The in-process API server, over HTTP through pipes in memory, in paused time.
pub struct InProcess {
    server: ApiServer,
    wire: InMemory,
}

const NAMESPACE: &str = "default";

impl InProcess {
    pub fn new() -> Self {
        let server = ApiServer::new();
        let wire = InMemory::new(&server);
        Self { server, wire }
    }

    fn line(&self) -> (Line, pipe::Pipes) {
        let (pipes, ends) = mpsc::unbounded_channel();
        (Line::new(Listener::Pipes(ends), Server::InMemory(self.wire.clone())), pipes)
    }
}

impl World for InProcess {
    fn namespace(&self) -> &str {
        NAMESPACE
    }

    fn client(&self, user: &str) -> Client {
        Client::new(self.server.service().user(user), NAMESPACE)
    }

    fn pool(&self, user: &str) -> LeasePool {
        let client = self.client(user);
        LeasePool::over(move || Ok(client.clone())).expect("a client")
    }

    fn on_clock(&self, builder: ElectionBuilder) -> ElectionBuilder {
        builder.clock(Arc::new(TokioClock::new()))
    }

    /// No machine delays paused time. A poll and a pause do.
    fn slack(&self) -> Duration {
        Duration::from_millis(100)
    }

    async fn join(&self, user: &str, builder: ElectionBuilder) -> Joined {
        let (line, pipes) = self.line();
        let name = user.to_owned();
        let connect =
            move || Ok(Client::new(pipe::over(pipes.clone(), &name, TokioExecutor::new()), NAMESPACE));
        let election =
            builder.build_in(&LeasePool::over(connect).expect("a client")).expect("a valid election");
        let (work, pipes) = self.line();
        let gated = election.layer().layer(pipe::over(pipes, user, election.connections()));
        Joined { client: Client::new(gated, NAMESPACE), election, line, work }
    }

    async fn writes(&self) -> Vec<WriteRecord> {
        self.server.write_log()
    }

    async fn reads(&self, user: &str, verb: &str) -> u64 {
        self.server.reads(user, verb, "leases")
    }

    async fn go_away(&self) {
        self.wire.answer(false);
    }

    async fn come_back(&self) {
        self.wire.answer(true);
    }

    async fn restart(&self) {
        self.wire.answer(false);
        self.wire.answer(true);
    }
}
