//! The stage: one lease on a server, the objects that are written, the candidates, and what the server's audit log says.

use crate::{
    Failure,
    apiserver::Assets,
    args::Candidates,
    elector::{Contest, Elector, Layers, Pace},
    faults::Played,
    journal::Journal,
    lateness::{End, Late, late},
    proxy::Mode,
    report::{Case, Report},
    roster::Roster,
    seen::Seen,
    site::{Site, lock},
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
use kube_leader_gate::{
    LeaseTiming, Policy,
    lease::LeaseName,
    testing::{Judge, Verdict},
};
use rustix::process::Signal;
use serde_json::json;
use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use test_support::kube_leader_gate_fence::{Fence, Writers};
use tokio::time::{Instant, sleep, timeout};

/// The name of the lease, and of the object that is written.
const NAME: &str = "chaos";
/// Who steals the lease.
const OUTSIDER: &str = "outsider";
/// The pause between two checks of a condition.
const LOOK: Duration = Duration::from_millis(20);
/// How much longer than its times say something may take on a busy machine.
const BUSY: Duration = Duration::from_secs(120);

pub struct Stage {
    pub site: Arc<Site>,
    pub roster: Roster,
    pub journal: Arc<Journal>,
    pub lease: Duration,
    pub namespace: String,
    client: Client,
    seen: Arc<Mutex<Seen>>,
}

/// The candidates of one stage.
#[derive(Clone, Debug)]
pub struct Cast {
    /// The numbers of their users.
    pub numbers: Range<usize>,
    pub elector: Elector,
    pub timing: LeaseTiming,
    pub layers: Layers,
    pub pace: Pace,
}

impl Stage {
    /// A new server, and candidates that have been started.
    pub async fn set(
        assets: &'static Assets,
        candidates: &Candidates,
        pace: Pace,
        journal: Journal,
    ) -> Result<Self, Failure> {
        let Candidates { count, timing, elector, layers } = *candidates;
        let cast = Cast { numbers: 0..count.into(), elector, timing, layers, pace };
        Self::on(Arc::new(Site::open(assets).await), cast, Arc::new(journal)).await
    }

    /// Candidates that have been started, in a new namespace.
    pub async fn on(site: Arc<Site>, cast: Cast, journal: Arc<Journal>) -> Result<Self, Failure> {
        let Cast { numbers, elector, timing, layers, pace } = cast;
        let namespace = site.cluster.namespace().await;
        let seen = site.watch(&namespace);
        let client = site.cluster.client("admin");
        let users: Vec<_> = numbers.map(|number| format!("candidate-{number}")).collect();
        let maps = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
        for name in pace.objects(NAME, &users) {
            let object = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
            maps.create(&PostParams::default(), &object).await?;
        }
        let contest = Contest { lease: LeaseName::new(&namespace, NAME)?, users };
        if layers.fence {
            let writers = Writers::users(&contest.users)?;
            Fence::new(&contest.lease, &writers, &Policy::strict())?.apply(&client).await?;
        }
        let recipe = elector.recipe(contest, timing, pace, layers)?;
        let roster = Roster::new(&site.cluster, recipe, journal.clone()).await?;
        let lease = timing.lease_duration();
        let stage = Self { site, roster, journal, lease, namespace, client, seen };
        let from = Timestamp::now();
        for seat in 0..stage.roster.len() {
            stage.roster.start(seat)?;
        }
        // A fault must not hit a process that has not begun: a signal would end it.
        for seat in 0..stage.roster.len() {
            stage.contends(seat, from).await?;
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

    /// The writes that ended after another candidate's acquisition, and when each write of a candidate took effect.
    pub fn late(&self) -> Result<(Vec<Late>, Vec<Instant>), Failure> {
        let overlaps = self.report(&[])?.overlaps();
        let candidates = self.roster.identities();
        let seen = self.seen();
        let late = late(&seen.log, &self.judge().verdict(&seen.log).terms, &candidates);
        let arrived = late.iter().filter(|it| it.end == End::Arrived).count();
        if arrived != overlaps {
            return Err(format!("the judge sees {overlaps} late arrivals, this count {arrived}").into());
        }
        let effects = seen.log.iter().filter(|it| it.took_effect() && candidates.contains(&it.user));
        let effects = effects.filter(|it| it.resource != "leases").filter_map(|it| Some(it.completed?.at));
        Ok((late, effects.collect()))
    }

    fn judge(&self) -> Judge {
        Judge::new(&self.namespace, NAME, self.roster.identities())
    }

    /// What the audit log says now.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.site.catch_up();
        lock(&self.seen)
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

    /// Waits until another candidate than this one holds the lease and has written.
    pub async fn succeeded(&self, former: usize) -> Result<usize, Failure> {
        self.until("no other candidate leads and writes", || {
            let seen = self.seen();
            let (holder, acquired) = seen.holder.as_ref()?;
            let seat = self.roster.seat(holder).filter(|seat| *seat != former);
            seen.written.get(holder).filter(|it| *it > acquired).and(seat)
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
        // A lease that has to expire, twice, and some seconds for an API server that starts, on a busy machine.
        let bound = self.lease * 2 + BUSY;
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
        self.lease + BUSY
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
        self.site.cluster.thaw();
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
        let (mut last, began) = (String::new(), Instant::now());
        while began.elapsed() < BUSY {
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
