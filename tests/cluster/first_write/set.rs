//! Three replicas in a namespace of their own, their user, and their objects.

use crate::{
    operator::{Greeting, NAME},
    process::{Replica, kubeconfig},
    round::{Round, is_work},
    trace,
    user::{Failure, User},
};
use http::{Request, header::ACCEPT};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::ListParams};
use std::time::Duration;
use test_support::apiserver::{Audit, AuditEvent, Cluster};
use tokio::time::{Instant, sleep, timeout};

/// With 20,000 objects, a busy server takes minutes for all writes of a new leader.
const PATIENCE: Duration = Duration::from_secs(600);
const LOGGED: &str = "info,kube_client=off,rustls_platform_verifier=off";
const TRACED: &str = "info,kube_client=debug,kube_runtime=debug,kube_leader_gate=debug,hyper_util=debug";

/// What `caught_up` accepts.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A replica without a write or a look for so long has nothing left to do.
const QUIET: Duration = Duration::from_secs(2);

pub struct Set {
    cluster: &'static Cluster,
    namespace: String,
    mode: &'static str,
    trace: bool,
    replicas: Vec<Replica>,
    /// The leader that the last round stopped, for its log.
    stopped: Option<String>,
    started: usize,
    rounds: usize,
    objects: usize,
    client: Client,
    user: User,
    leases: Api<Lease>,
    audit: Audit,
    /// What the server has logged about this namespace since the last signal.
    events: Vec<AuditEvent>,
}

impl Set {
    pub async fn start(
        cluster: &'static Cluster,
        mode: &'static str,
        objects: usize,
        trace: bool,
    ) -> Result<Self, Failure> {
        let namespace = cluster.namespace().await;
        let mut config = cluster.config("admin");
        namespace.clone_into(&mut config.default_namespace);
        let client = Client::try_from(config)?;
        let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
        let mut set = Self {
            cluster,
            mode,
            trace,
            replicas: Vec::new(),
            stopped: None,
            started: 0,
            rounds: 0,
            objects,
            user: User::new(client.clone()),
            leases: Api::default_namespaced(client.clone()),
            client,
            audit: cluster.audit(),
            events: Vec::new(),
            namespace,
        };
        for _ in 0..3 {
            set.start_replica();
        }
        let served = async {
            while greetings.list(&ListParams::default()).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, served).await?;
        for _ in 0..objects {
            set.user.create().await?;
        }
        set.user.satisfied(PATIENCE).await?;
        set.quiet().await;
        Ok(set)
    }

    /// Stops the leader, and waits for the first write of the next one.
    pub async fn round(&mut self) -> Result<Round, Failure> {
        let old_leader = self.leader().await?;
        let place = self.replicas.iter().position(|it| it.name == old_leader);
        let leader = self.replicas.remove(place.ok_or("the leader is gone")?);
        self.events.clear();
        drop(self.audit.read());
        self.rounds += 1;
        // Any object: the next ones are far away in the order of their names.
        let changed = format!("greeting-{}", self.rounds * 617 % self.objects + 1);
        let signal = Timestamp::now();
        let whom = format!("round {}", self.rounds);
        let (log, done) = tokio::join!(leader.terminate(), self.user.change(&changed, &whom));
        done?;
        self.stopped = Some(log);
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.listen();
            // A little longer than the second in which the writes are counted.
            if let Some(mut round) = Round::read(signal, &old_leader, &changed, &self.events)
                && Timestamp::now() > round.acquired + Duration::from_millis(1_200)
            {
                round.bytes = self.size(&round.lists).await?;
                return Ok(round);
            }
            if Instant::now() > deadline {
                return Err("no write of a next leader".into());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Replaces the stopped replica, and waits until no replica has anything to do.
    pub async fn settle(&mut self, _round: &Round) -> Result<(), Failure> {
        self.user.satisfied(PATIENCE).await?;
        self.start_replica();
        self.quiet().await;
        Ok(())
    }

    /// The path of a round, from both logs and the server's.
    pub fn trace(&self, round: &Round) -> String {
        let next = self.replicas.iter().find(|it| it.name == round.next_leader).map(Replica::log);
        trace::merged(round, self.stopped.as_deref(), next.as_deref(), &self.events)
    }

    /// Asks for the same lists again, and returns the size of the answers.
    async fn size(&self, lists: &[String]) -> Result<usize, Failure> {
        let accept = if self.mode == "knowing" { METADATA } else { "application/json" };
        let mut size = 0;
        for list in lists {
            let request = Request::get(list).header(ACCEPT, accept).body(Vec::new())?;
            size += self.client.request_text(request).await?.len();
        }
        Ok(size)
    }

    fn start_replica(&mut self) {
        // The server knows so many candidates. A name comes back long after its replica has gone.
        let name = format!("candidate-{}", self.started % 32);
        self.started += 1;
        let (url, ca, token) = (self.cluster.url(), self.cluster.ca(), Cluster::token(&name));
        let kubeconfig = kubeconfig(&url, &ca, &token, &self.namespace);
        let options = ["--cluster", "--fast", "--mode", self.mode];
        let logged = if self.trace { TRACED } else { LOGGED };
        self.replicas.push(Replica::start_logging(&name, &kubeconfig, &options, logged));
    }

    async fn leader(&self) -> Result<String, Failure> {
        let holder = async {
            loop {
                let lease = self.leases.get_opt(NAME).await?;
                let holder = lease.and_then(|it| it.spec?.holder_identity).unwrap_or_default();
                if self.replicas.iter().any(|it| it.name == holder) {
                    return Ok::<_, Failure>(holder);
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, holder).await?
    }

    /// Waits until the newest replica watches, and until the server has seen no work for a while.
    async fn quiet(&mut self) {
        let newest = self.replicas.last().map(|it| it.name.clone()).unwrap_or_default();
        let mut watches = false;
        let mut last = Instant::now();
        while !watches || last.elapsed() < QUIET {
            let seen = self.listen();
            watches |= self.events.iter().any(|it| it.verb == "watch" && it.user.username == newest);
            if seen > 0 {
                last = Instant::now();
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Reads the server's log, and says how much work it has seen.
    fn listen(&mut self) -> usize {
        let mut new = self.audit.read();
        new.retain(|it| it.object_ref.namespace.as_ref() == Some(&self.namespace));
        let work = new.iter().filter(|it| is_work(it) && it.user.username != "admin").count();
        self.events.extend(new);
        work
    }
}
