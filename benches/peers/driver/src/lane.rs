//! The candidates of one peer that contend for one lease.

use crate::{
    failure::Failure,
    ledger::{ADMIN, Ledger, NAME},
    peer::Peer,
    site::{Site, now},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use rustix::process::Signal;
use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use test_support::apiserver::Guarded;
use tokio::time::{Instant, sleep};

/// How long a start keeps the others waiting at most, and how long it may take.
const START_QUIET: Duration = Duration::from_millis(500);
const START: Duration = Duration::from_secs(30);

/// Until there is a leader. The peers that wait for the end of a lease need two of them.
const SETTLE: Duration = Duration::from_secs(60);

/// As Kubernetes waits after SIGTERM before it kills.
pub(crate) const GRACE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) site: Arc<Site>,
    pub(crate) peer: Peer,
    pub(crate) namespace: String,
    every: Duration,
    seats: Vec<Seat>,
    /// How often a process was started again after it had ended by itself.
    pub(crate) restarts: u32,
}

/// A user of the API server, and its process if it has one.
#[derive(Debug)]
struct Seat {
    user: String,
    kubeconfig: PathBuf,
    log: PathBuf,
    process: Option<Guarded>,
    started: Timestamp,
}

impl Lane {
    /// Starts the first `replicas` of the seats. A leader writes as often as `every` says; zero: once for each term.
    pub(crate) async fn open(
        site: &Arc<Site>,
        peer: Peer,
        every: Duration,
        seats: usize,
        replicas: usize,
    ) -> Result<Self, Failure> {
        let namespace = site.namespace().await;
        let object = ConfigMap {
            metadata: ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        };
        let objects = Api::<ConfigMap>::namespaced(site.cluster.client(ADMIN), &namespace);
        objects.create(&PostParams::default(), &object).await?;
        let url = site.cluster.url();
        let seat = |number| {
            let user = format!("candidate-{number}");
            let kubeconfig = site.cluster.kubeconfig(&user, &url);
            let log = site.cluster.folder().join(format!("{namespace}-{user}.log"));
            Seat { user, kubeconfig, log, process: None, started: now() }
        };
        let seats = (0..seats).map(seat).collect();
        let mut lane = Self { site: site.clone(), peer, namespace, every, seats, restarts: 0 };
        for seat in 0..replicas {
            lane.start(seat).await?;
        }
        Ok(lane)
    }

    /// Starts a candidate, and waits until it has asked for the lease.
    pub(crate) async fn start(&mut self, seat: usize) -> Result<(), Failure> {
        let quiet = self.site.quiet(START_QUIET).await;
        let Seat { user, kubeconfig, log, process, started } = &mut self.seats[seat];
        let mut command = Command::new(self.peer.program());
        command.env("KUBECONFIG", kubeconfig);
        command.args([&self.namespace, NAME, user, &self.every.as_millis().to_string()]);
        let output = File::options().create(true).append(true).open(&log)?;
        *started = now();
        *process = Some(
            Guarded::spawn_with(&command, Stdio::null(), output.into())
                .map_err(|error| format!("{}: {error}", command.get_program().display()))?,
        );
        let from = *started;
        let asked = |ledger: &Ledger| ledger.asked.get(user).filter(|at| **at > from).map(drop);
        let outcome =
            self.site.wait(&self.namespace, START, "a new candidate asks for the lease", asked).await;
        drop(quiet);
        outcome.map_err(|error| self.last_words(seat, &error.to_string()))
    }

    /// Waits until a running candidate leads, and starts those again that have ended by themselves, as a kubelet
    /// would.
    pub(crate) async fn settle(&mut self) -> Result<usize, Failure> {
        let until = Instant::now() + SETTLE;
        while Instant::now() < until {
            for seat in 0..self.seats.len() {
                if self.seats[seat].process.as_mut().is_some_and(|it| !it.is_running()) {
                    self.restarts += 1;
                    self.start(seat).await?;
                }
            }
            if let Some(leader) = self.leader() {
                return Ok(leader);
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err(format!("no candidate leads after {SETTLE:?}").into())
    }

    /// The running candidate that holds the lease and has written since it was acquired. A holder that has stopped
    /// renewing is none.
    fn leader(&self) -> Option<usize> {
        let holder = self.site.look(&self.namespace, |ledger| {
            let holder = ledger.holder().filter(|_| ledger.last().is_some_and(|it| it.end > now()))?;
            let claims = ledger.claims.iter().rev().take_while(|it| it.holder.as_deref() == Some(holder));
            let acquired = claims.last()?.at;
            ledger.written(acquired, holder).map(|_| holder.to_owned())
        })?;
        self.seats.iter().position(|it| it.user == holder && it.process.is_some())
    }

    pub(crate) fn user(&self, seat: usize) -> &str {
        &self.seats[seat].user
    }

    /// The seats with a process.
    pub(crate) fn running(&self) -> Vec<usize> {
        (0..self.seats.len()).filter(|it| self.seats[*it].process.is_some()).collect()
    }

    /// The seat without a process whose last one was started first: a new pod has a new name.
    pub(crate) fn free(&self) -> Option<usize> {
        let free = (0..self.seats.len()).filter(|it| self.seats[*it].process.is_none());
        free.min_by_key(|it| self.seats[*it].started)
    }

    /// The number of a candidate's process.
    pub(crate) fn process(&self, seat: usize) -> Option<i32> {
        self.seats[seat].process.as_ref().map(|it| it.pid().as_raw_nonzero().get())
    }

    pub(crate) fn signal(&mut self, seat: usize, signal: Signal) {
        if let Some(process) = &mut self.seats[seat].process {
            process.signal(signal);
        }
    }

    /// Waits for the end of a process, and kills it if that takes longer than Kubernetes waits. The error says so.
    pub(crate) async fn ended(&mut self, seat: usize) -> Result<Timestamp, Failure> {
        let Some(mut process) = self.seats[seat].process.take() else { return Ok(now()) };
        let status = process.ended(GRACE).await;
        process.kill();
        match status {
            Some(_) => Ok(now()),
            None => Err(self.last_words(seat, &format!("still ran {GRACE:?} after SIGTERM"))),
        }
    }

    /// Kills what there is, and starts the first `replicas` again.
    pub(crate) async fn reset(&mut self, replicas: usize) -> Result<(), Failure> {
        for seat in &mut self.seats {
            seat.process = None;
        }
        for seat in 0..replicas {
            self.start(seat).await?;
        }
        Ok(())
    }

    fn last_words(&self, seat: usize, what: &str) -> Failure {
        let log = fs::read_to_string(&self.seats[seat].log).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(5).collect();
        let lines = lines.into_iter().rev().collect::<Vec<_>>().join(" / ");
        format!("{}: {what}; its last words: {lines}", self.seats[seat].user).into()
    }
}
