//! The operator without a cluster: three replicas as tasks, over the in-process API server, which judges them.

use crate::{
    operator::{self, Greeting, Mode, NAME},
    report::Report,
    user::{Failure, User},
};
use kube::{Client, CustomResourceExt};
use kube_leader_gate::{
    CancellationToken, Election, Identity, LeaseTiming,
    election::ErrElectionEnded,
    testing::{ApiServer, Endpoint},
};
use serde_json::json;
use std::time::Duration;
use tokio::{task::JoinSet, time::sleep};

/// The longest wait: what takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two actions of the user.
const BUSY: Duration = Duration::from_millis(3);
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const KINDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Replaces replicas as a Deployment does.
struct Replicas {
    server: ApiServer,
    endpoint: Endpoint,
    mode: Mode,
    /// The oldest first.
    running: Vec<Replica>,
    names: Vec<String>,
}

struct Replica {
    name: String,
    shutdown: CancellationToken,
    task: JoinSet<Result<(), ErrElectionEnded>>,
}

/// Plays, prints and judges. It is an error if the operator missed an object, or if two replicas wrote at once.
pub async fn play(mode: Mode) -> Result<(), Failure> {
    let server = ApiServer::new();
    // The server accepts every kind, but does not define any by itself.
    let mut kind = serde_json::to_value(Greeting::crd())?;
    kind["status"] = json!({ "conditions": [{ "type": "Established", "status": "True" }] });
    server.put("setup", &format!("{KINDS}/{}", Greeting::crd_name()), kind)?;

    let mut replicas = Replicas::new(server, mode).await?;
    for _ in 0..3 {
        replicas.start()?;
    }
    let how = match mode {
        Mode::Gated => "each runs the whole controller, of which one writes",
        Mode::Knowing => "each runs the whole controller, of which one writes once its cache has caught up",
        Mode::LeadingOnly => "the one that leads runs the controller",
    };
    println!("three replicas, {how}: {} leads", replicas.leader().await?);

    let mut user = User::new(Client::try_from(replicas.endpoint.config("user"))?);
    for _ in 0..10 {
        user.create().await?;
    }
    user.satisfied(PATIENCE).await?;
    println!("{} objects have been made and reconciled", user.objects());

    let rolled = CancellationToken::new();
    let roll = async {
        let outcome = replicas.roll().await;
        rolled.cancel();
        outcome
    };
    tokio::try_join!(roll, user.keep_busy(BUSY, &rolled))?;
    user.delete_half().await?;
    let settled = user.satisfied(PATIENCE).await?;
    println!("{} objects have been made, changed and deleted meanwhile", user.objects());
    println!("the last one was right {settled:.1?} after the last change: none was missed");

    replicas.stop_all().await?;
    let report = Report::new("default", &replicas.names, &replicas.server.write_log());
    println!("\n{report}");
    if report.strays.is_empty() {
        return Ok(());
    }
    Err("a replica wrote without leading".into())
}

// === impl Replicas ===

impl Replicas {
    async fn new(server: ApiServer, mode: Mode) -> Result<Self, Failure> {
        let endpoint = server.serve().await?;
        Ok(Self { server, endpoint, mode, running: Vec::new(), names: Vec::new() })
    }

    fn start(&mut self) -> Result<(), Failure> {
        let name = format!("replica-{}", self.names.len() + 1);
        let config = self.endpoint.config(&name);
        let election = Election::builder("default", NAME)
            .identity(Identity::new(name.clone())?)
            .timing(LeaseTiming::fast())
            .build(&config)?;
        let client = election.client(&config)?;
        let shutdown = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(operator::run(election, client, self.mode, shutdown.clone()));
        self.names.push(name.clone());
        self.running.push(Replica { name, shutdown, task });
        Ok(())
    }

    /// Replaces the replicas one after the other. Each waits until a replica has acquired the lease again.
    async fn roll(&mut self) -> Result<(), Failure> {
        for _ in 0..self.running.len() {
            self.start()?;
            let ended = self.running.remove(0).stop().await?;
            println!(
                "{ended} is replaced by {}, {} leads",
                self.names[self.names.len() - 1],
                self.leader().await?
            );
            // Gives the replicas some time to work.
            sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    async fn stop_all(&mut self) -> Result<(), Failure> {
        // The leader is likely an old one, and no older replica is left that could take over.
        for replica in self.running.drain(..).rev() {
            replica.stop().await?;
        }
        Ok(())
    }

    /// The holder of the lease, once there is one.
    async fn leader(&self) -> Result<String, Failure> {
        let holder = async {
            loop {
                let lease = self.server.object(&format!("{LEASE}/{NAME}"));
                let holder = lease.and_then(|it| it["spec"]["holderIdentity"].as_str().map(str::to_owned));
                match holder.filter(|it| !it.is_empty()) {
                    Some(holder) => return holder,
                    None => sleep(Duration::from_millis(1)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, holder).await.map_err(|_| "no replica leads".into())
    }
}

// === impl Replica ===

impl Replica {
    /// Stops as on SIGTERM: finishes open reconciliations and releases the lease.
    async fn stop(mut self) -> Result<String, Failure> {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(PATIENCE, self.task.join_next()).await;
        match ended.map_err(|_| format!("{} does not stop", self.name))? {
            Some(outcome) => outcome??,
            None => return Err(format!("{} never ran", self.name).into()),
        }
        Ok(self.name)
    }
}
