//! The stage: a server of its own, one lease, one `ConfigMap`, and the server's audit log as it grows.

use crate::{
    Failure,
    apiserver::{Assets, Audit, AuditEvent, Cluster},
    args::Candidates,
    elector::Pace,
    faults::Played,
    journal::Journal,
    proxy::Mode,
    report::{Case, Report},
    roster::Roster,
};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube_client::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_leader_gate::testing::{Judge, LogTime, Verdict, WriteRecord};
use rustix::process::Signal;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// The name of both objects.
const NAME: &str = "chaos";
/// Who steals the lease.
const OUTSIDER: &str = "outsider";
/// The pause between two checks of a condition.
const LOOK: Duration = Duration::from_millis(20);

pub struct Stage {
    pub cluster: Cluster,
    pub roster: Roster,
    pub journal: Arc<Journal>,
    pub lease: Duration,
    pub namespace: String,
    client: Client,
    seen: Mutex<Seen>,
}

/// The audit log so far.
pub struct Seen {
    audit: Audit,
    /// The candidates' and the administrator's writes.
    pub log: Vec<WriteRecord>,
    /// The holder of the lease, and since when.
    holder: Option<(String, LogTime)>,
    /// When each candidate's last effective write arrived.
    written: BTreeMap<String, LogTime>,
    /// When each candidate last read the lease, or began to watch it.
    read: BTreeMap<String, jiff::Timestamp>,
}

impl Stage {
    /// A new server, and candidates that have been started.
    pub async fn set(
        assets: &'static Assets,
        candidates: &Candidates,
        pace: Pace,
        journal: Journal,
    ) -> Result<Self, Failure> {
        let cluster = Cluster::start(assets).await;
        let namespace = cluster.namespace().await;
        let client = cluster.client("admin");
        let object = serde_json::from_value(json!({ "metadata": { "name": NAME } }))?;
        Api::<ConfigMap>::namespaced(client.clone(), &namespace)
            .create(&PostParams::default(), &object)
            .await?;
        let lease = format!("{namespace}/{NAME}");
        let recipe = candidates.elector.recipe(lease, candidates.timing, pace)?;
        let journal = Arc::new(journal);
        let roster = Roster::new(&cluster, candidates.count.into(), recipe, journal.clone()).await?;
        let seen = Mutex::new(Seen::new(cluster.audit()));
        let lease = candidates.timing.lease_duration();
        let stage = Self { cluster, roster, journal, lease, namespace, client, seen };
        for seat in 0..stage.roster.len() {
            stage.roster.start(seat)?;
        }
        Ok(stage)
    }

    /// The judge's findings so far.
    pub fn verdict(&self) -> Verdict {
        self.judge().verdict(&self.seen().log)
    }

    pub fn report(&self, played: &[Played]) -> Result<Report, Failure> {
        let (judge, candidates) = (self.judge(), self.roster.identities());
        Report::new(&Case { judge, candidates, log: &self.seen().log }, played)
    }

    fn judge(&self) -> Judge {
        Judge::new(&self.namespace, NAME, self.roster.identities())
    }

    /// What the audit log says now.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.catch_up(&self.namespace);
        seen
    }

    /// The candidate that holds the lease.
    pub fn holder(&self) -> Option<usize> {
        let seen = self.seen();
        seen.holder.as_ref().and_then(|(holder, _)| self.roster.seat(holder))
    }

    /// Waits until a candidate holds the lease and has written since then and since `from`. The error says that this
    /// took too long, or that a candidate ended by itself.
    pub async fn settled(&self, from: Instant) -> Result<usize, Failure> {
        self.until("no candidate leads and writes", || {
            let seen = self.seen();
            let (holder, acquired) = seen.holder.as_ref()?;
            let written = seen.written.get(holder).filter(|it| *it > acquired && it.at > from);
            written.and(self.roster.seat(holder))
        })
        .await
    }

    /// Waits until this candidate has read or watched the lease since `from`.
    pub async fn contends(&self, seat: usize, from: jiff::Timestamp) -> Result<(), Failure> {
        let identity = self.roster.identity(seat);
        self.until(&format!("{identity} does not read the lease"), || {
            self.seen().read.get(identity).filter(|at| **at > from).map(drop)
        })
        .await
    }

    async fn until<T>(&self, otherwise: &str, mut found: impl FnMut() -> Option<T>) -> Result<T, Failure> {
        // A lease that has to expire, twice, on a busy machine.
        let bound = self.lease * 2 + Duration::from_secs(30);
        let began = Instant::now();
        loop {
            if let Some(found) = found() {
                return Ok(found);
            }
            self.roster.check()?;
            if began.elapsed() > bound {
                return Err(format!("{otherwise}, after {bound:?}").into());
            }
            sleep(LOOK).await;
        }
    }

    /// How long a candidate may take to end after SIGTERM. Its deadline cuts its writes off at the latest.
    pub fn stop_bound(&self) -> Duration {
        self.lease + Duration::from_secs(20)
    }

    /// Writes an outsider into the lease, even if a candidate holds it.
    pub async fn steal(&self, duration: Duration) -> Result<(), Failure> {
        let now = MicroTime(Timestamp::now());
        let theft = json!({ "spec": {
            "holderIdentity": OUTSIDER, "leaseDurationSeconds": duration.as_secs().max(1),
            "acquireTime": now, "renewTime": now,
        } });
        self.insist(|leases| {
            let patch = Patch::Merge(theft.clone());
            async move { leases.patch(NAME, &PatchParams::default(), &patch).await.map(drop) }
        })
        .await
    }

    pub async fn delete_lease(&self) -> Result<(), Failure> {
        self.insist(|leases| async move { leases.delete(NAME, &DeleteParams::default()).await.map(drop) })
            .await
    }

    /// Ends the effects of a fault that failed.
    pub fn mend(&self) {
        self.cluster.thaw();
        for seat in 0..self.roster.len() {
            self.roster.line(seat).set(Mode::Open);
            self.roster.signal(seat, Signal::CONT);
        }
    }

    /// Retries until it succeeds: the server may be frozen, or may have just restarted.
    async fn insist<F>(&self, act: impl Fn(Api<Lease>) -> F) -> Result<(), Failure>
    where
        F: Future<Output = Result<(), kube_client::Error>>,
    {
        let mut last = String::new();
        for _ in 0..30 {
            let leases = Api::namespaced(self.client.clone(), &self.namespace);
            let answer = timeout(Duration::from_secs(2), act(leases)).await.map_err(Failure::from);
            match answer.and_then(|it| it.map_err(Failure::from)) {
                Ok(()) => return Ok(()),
                Err(error) => last = error.to_string(),
            }
            sleep(LOOK).await;
        }
        Err(format!("the administrator cannot reach the lease: {last}").into())
    }
}

impl Seen {
    fn new(audit: Audit) -> Self {
        let (written, read) = (BTreeMap::new(), BTreeMap::new());
        Self { audit, log: Vec::new(), holder: None, written, read }
    }

    fn catch_up(&mut self, namespace: &str) {
        for event in self.audit.read() {
            if event.object_ref.namespace.as_deref() == Some(namespace) {
                self.take_in(&event);
            }
        }
    }

    fn take_in(&mut self, event: &AuditEvent) {
        let is_lease = event.object_ref.resource == "leases";
        let user = &event.user.username;
        let Some(record) = event.write() else {
            if is_lease && matches!(&*event.verb, "get" | "list" | "watch") {
                self.read.insert(user.clone(), event.request_received_timestamp);
            }
            return;
        };
        if record.took_effect() && is_lease {
            self.holder = record.lease.as_ref().and_then(|lease| {
                let since = match &self.holder {
                    Some((holder, since)) if *holder == lease.holder_identity => *since,
                    _ => record.completed?,
                };
                Some((lease.holder_identity.clone(), since))
            });
        } else if record.took_effect() {
            self.written.insert(user.clone(), record.received);
        }
        self.log.push(record);
    }
}
