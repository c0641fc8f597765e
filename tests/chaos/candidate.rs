//! A candidate: a process that contends for the lease and writes all the time, through the gate.
//!
//! It prints what happens as JSON lines, and ends in order on SIGTERM, at once when its standard input ends.

use crate::{Failure, args, journal::micros};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client, Config, Error,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_leader_gate::{Election, GateError, Identity, Leader};
use serde_json::{Value, json};
use std::{
    io::{self, Read, Write},
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

/// So that a candidate that is killed has told most of them.
const TELL_COUNTS: Duration = Duration::from_secs(1);

pub fn run(options: &args::Candidate) -> Result<ExitCode, Failure> {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        // Nobody is left who would want a word.
        process::exit(1);
    });
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build()?.block_on(contend(options))?;
    Ok(ExitCode::SUCCESS)
}

async fn contend(options: &args::Candidate) -> Result<(), Failure> {
    let kubeconfig = Kubeconfig::read_from(&options.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let (namespace, name) = options.lease.split_once('/').ok_or("--lease is not NAMESPACE/NAME")?;
    let election = Election::builder(namespace, name)
        .identity(Identity::new(&options.identity)?)
        .timing(options.timing.lease)
        .build(&config)?;
    let client = election.client(config)?;

    let mut terminate = signal(SignalKind::terminate())?;
    let counters = Arc::<Counters>::default();
    let mut teller = JoinSet::new();
    teller.spawn(tell_changes(election.leader()));
    teller.spawn(tell_counts(counters.clone()));
    let stop = Arc::<AtomicBool>::default();
    let mut writers = JoinSet::new();
    for _ in 0..options.writers {
        let api = Api::namespaced(Client::clone(&client), namespace);
        let writing = write(
            api,
            name.to_owned(),
            options.identity.clone(),
            options.write_every,
            counters.clone(),
            stop.clone(),
        );
        writers.spawn(writing);
    }
    let workload = async {
        terminate.recv().await;
        tell("stopping", json!({}));
        stop.store(true, Relaxed);
        // What is under way is brought to its end, or cut off by the gate.
        writers.join_all().await;
    };
    election.run(workload).await?;
    tell("stopped", counters.json());
    Ok(())
}

async fn write(
    api: Api<ConfigMap>,
    name: String,
    identity: String,
    every: Duration,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
) {
    let mut ticks = interval(every);
    // A candidate that was held up does not make up for it.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stop.load(Relaxed) {
        ticks.tick().await;
        let attempt = counters.attempts.fetch_add(1, Relaxed);
        let change = json!({ "data": { &identity: attempt.to_string() } });
        let outcome = api.patch(&name, &PatchParams::default(), &Patch::Merge(change)).await;
        counters.outcome(&outcome.map(drop)).fetch_add(1, Relaxed);
    }
}

async fn tell_changes(leader: Leader) {
    let mut changes = leader.changes();
    while let Some(state) = changes.next().await {
        let event = if state.term.is_some() { "leading" } else { "following" };
        let lost = state.lost.map(|it| format!("{it:?}"));
        tell(event, json!({ "holder": state.holder.as_deref(), "closing": state.closing, "lost": lost }));
    }
}

async fn tell_counts(counters: Arc<Counters>) {
    let mut ticks = interval(TELL_COUNTS);
    loop {
        ticks.tick().await;
        tell("counts", counters.json());
    }
}

fn tell(event: &str, mut more: Value) {
    more["at"] = micros().into();
    more["event"] = event.into();
    // If nobody listens, its standard input has ended as well.
    let _ = writeln!(io::stdout(), "{more}");
}

/// What has become of its writes.
#[derive(Debug, Default)]
struct Counters {
    attempts: AtomicU64,
    written: AtomicU64,
    rejected: AtomicU64,
    cut_off: AtomicU64,
    failed: AtomicU64,
}

impl Counters {
    fn outcome(&self, outcome: &Result<(), Error>) -> &AtomicU64 {
        let Err(error) = outcome else { return &self.written };
        match GateError::find(error) {
            Some(GateError::NotLeader(_)) => &self.rejected,
            Some(GateError::LeadershipLost(_)) => &self.cut_off,
            _ => &self.failed,
        }
    }

    fn json(&self) -> Value {
        json!({
            "written": self.written.load(Relaxed),
            "rejected": self.rejected.load(Relaxed),
            "cut_off": self.cut_off.load(Relaxed),
            "failed": self.failed.load(Relaxed),
        })
    }
}
