//! A candidate: a process that contends for the lease, and all the time writes through the gate.
//!
//! It prints what happens as JSON lines. It ends in order on SIGTERM, and at once when its standard input ends.
//! SIGINT drops its workload with open writes. The process contends again after that.

use crate::{
    Failure, args,
    journal::micros,
    writers::{Counters, Writers},
};
use futures_util::StreamExt;
use kube_client::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_leader_gate::{CancellationToken, Candidate, Election, Identity, Policy, lease::LeaseName};
use serde_json::{Value, json};
use std::{
    io::{self, Read, Write},
    process,
    sync::Arc,
    thread,
    time::Duration,
};
use test_support::kube_leader_gate_fence as fence;
use tokio::{
    runtime::Handle,
    select,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
    time::interval,
};
use tracing_subscriber::EnvFilter;

/// How often it reports, so that a killed candidate has reported most of its writes.
const TELL_COUNTS: Duration = Duration::from_secs(1);

/// How long the workload may go on after SIGINT, and its writes after that. The sum is no longer than the shortest
/// delay of a slow uplink, so that writes are dropped before they are answered. A workload that ends on SIGTERM needs
/// neither.
const GRACE: Duration = Duration::from_millis(100);
const DRAIN: Duration = Duration::from_millis(100);

pub fn run(options: &args::Candidate) -> Result<(), Failure> {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        // Its parent is gone, so no process would read a report.
        process::exit(1);
    });
    let filter = EnvFilter::new("kube_leader_gate=info");
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(io::stderr).init();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build()?.block_on(contend(options))
}

async fn contend(options: &args::Candidate) -> Result<(), Failure> {
    let kubeconfig = Kubeconfig::read_from(&options.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let (namespace, name) = (options.lease.namespace(), options.lease.name());
    let mut terminate = signal(SignalKind::terminate())?;
    // From here on SIGINT does not end the process.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let counters = Arc::<Counters>::default();
    let mut counts = JoinSet::new();
    counts.spawn(tell_counts(counters.clone()));
    let mut goes_on = true;
    while goes_on {
        let mut builder = Election::builder(namespace, name)
            .identity(Identity::new(&options.identity)?)
            .timing(options.timing)
            .request_deadline(options.request_deadline)
            .grace(GRACE)
            .drain_timeout(DRAIN);
        if !options.fence.is_empty() {
            let users = fence::Writers::users(&options.fence)?;
            let fence = fence::Fence::new(&LeaseName::new(namespace, name)?, &users, &Policy::strict())?;
            builder = builder.layer_lock(fence.layer(Client::try_from(config.clone())?));
        }
        let election = builder.build(&config)?;
        let writers = Writers {
            api: Api::namespaced(election.client(&config)?, namespace),
            name: name.to_owned(),
            identity: options.identity.clone(),
            count: options.writers,
            every: options.write_every,
            restless: options.restless,
            counters: counters.clone(),
        };
        let mut changes = JoinSet::new();
        changes.spawn(tell_changes(election.candidate()));
        goes_on = if options.leading_only {
            lead(election, writers, &mut terminate).await?
        } else {
            write(election, writers, &mut terminate, &mut interrupt).await?
        };
    }
    tell("stopped", counters.json());
    Ok(())
}

/// Every replica writes, and the gate decides. On SIGINT the workload does not end by itself, and is dropped. Then
/// this returns true.
async fn write(
    election: Election,
    writers: Writers,
    terminate: &mut Signal,
    interrupt: &mut Signal,
) -> Result<bool, Failure> {
    let stop = CancellationToken::new();
    let stopping = async {
        terminate.recv().await;
        tell("stopping", json!({}));
        stop.cancel();
    };
    let workload = async { tokio::join!(stopping, writers.write(stop.clone())) };
    let interrupted = async {
        interrupt.recv().await;
        tell("interrupted", json!({}));
    };
    let dropped = election.run_until(interrupted, workload).await?.output.is_none();
    // The workload goes on while its writes end, and may meanwhile be told to stop.
    Ok(dropped && !stop.is_cancelled())
}

/// Only the leader works. On SIGINT its work ends with open writes, and it steps down and contends again.
async fn lead(election: Election, writers: Writers, terminate: &mut Signal) -> Result<bool, Failure> {
    let shutdown = async {
        terminate.recv().await;
        tell("stopping", json!({}));
    };
    let work = |ends: CancellationToken, _| {
        let writers = writers.clone();
        let interrupt = signal(SignalKind::interrupt());
        async move {
            // The same call succeeded at the start of the process.
            let Ok(mut interrupt) = interrupt else { return };
            select! {
                () = writers.write(ends) => {}
                _ = interrupt.recv() => tell("interrupted", json!({})),
            }
        }
    };
    election.run_while_leading(shutdown, work).await?.into_output();
    Ok(false)
}

async fn tell_changes(leader: Candidate) {
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
        let mut counts = counters.json();
        counts["tasks"] = Handle::current().metrics().num_alive_tasks().into();
        tell("counts", counts);
    }
}

fn tell(event: &str, mut more: Value) {
    more["at"] = micros().into();
    more["event"] = event.into();
    // If no process reads the output, the standard input has ended as well.
    let _ = writeln!(io::stdout(), "{more}");
}
