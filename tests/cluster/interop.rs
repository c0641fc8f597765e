//! client-go's elector and a candidate on one Lease: each takes over from the other, after a stop and after a crash.

use crate::{
    apiserver::{Cluster, Guarded, program},
    candidate::{Contender, builder, prepare, start},
    outsider::Outsider,
    real::Real,
    support::{DELAY, PATIENCE, judged, taken_over, until},
    world::World,
};
use kube_leader_gate::{LeaseTiming, testing::Verdict};
use rustix::process::Signal;
use serde::Deserialize;
use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// client-go distinguishes renewals by their second. At a shorter retry period it misses some, and takes over too
/// early.
fn timing() -> LeaseTiming {
    LeaseTiming::new(Duration::from_secs(5), Duration::from_millis(3500), Duration::from_secs(1))
        .expect("a valid timing")
}

/// A process with client-go's elector, which writes while it leads.
struct GoCandidate {
    process: Guarded,
    log: PathBuf,
    events: Arc<Mutex<Vec<Event>>>,
}

/// What the process reports, line by line.
#[derive(Debug, Deserialize)]
struct Event {
    event: String,
    holder: Option<String>,
}

impl GoCandidate {
    fn start(world: &Real<&'static Cluster>, user: &str) -> Self {
        let mut command = Command::new(program("candidate"));
        let timing = timing();
        let seconds = [timing.lease_duration(), timing.renew_deadline(), timing.retry_period()]
            .map(|part| part.as_secs_f64().to_string());
        command
            .arg("--kubeconfig")
            .arg(world.cluster.kubeconfig(user, &world.cluster.url()))
            .args(["--lease", &format!("{}/operator", world.namespace())])
            .args(["--identity", user, "--timing", &seconds.join("/")])
            .args(["--write-every", "10ms", "--writers", "3"]);
        let log = world.cluster.folder().join(format!("{user}-{}.log", world.namespace()));
        let stderr = File::create(&log).expect("a file");
        let mut process = Guarded::spawn_with(&command, Stdio::piped(), stderr.into()).expect("it starts");
        let lines = BufReader::new(process.stdout().expect("a pipe")).lines();
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = events.clone();
        // The task ends with the process whose output it reads.
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                seen.lock().expect("no panic").push(event);
            }
        });
        Self { process, log, events }
    }

    /// Waits until the process has led and written.
    async fn leads(&self, world: &impl World, user: &str) {
        until("client-go leads", async || self.events().iter().any(|event| event.event == "leading")).await;
        until("client-go writes", async || {
            world
                .writes()
                .await
                .iter()
                .filter(|write| write.user == user && write.resource == "configmaps")
                .count()
                > 3
        })
        .await;
    }

    /// The last holder that it has named.
    async fn observes(&self, holder: &str) {
        let last = || self.events().iter().filter_map(|event| event.holder.clone()).next_back();
        until(&format!("client-go observes {holder}"), async || last().as_deref() == Some(holder)).await;
    }

    /// Stops it with a signal, in order.
    async fn stop(&mut self) {
        self.process.signal(Signal::TERM);
        let status = self.process.ended(PATIENCE).await.expect("the process ends");
        assert!(status.success(), "{status}");
    }

    fn events(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.events.lock().expect("no panic")
    }
}

impl Drop for GoCandidate {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

async fn following(world: &impl World, user: &str) -> Contender {
    let candidate = start(world, user, builder(world, user).timing(timing())).await;
    until("the candidate knows the holder", async || candidate.candidate().holder().is_some()).await;
    candidate
}

const CANDIDATES: [&str; 3] = ["candidate-0", "candidate-1", "candidate-2"];

/// Each of the three has held the lease once and has written. client-go counts a change of holder once, also after a
/// release.
async fn one_after_the_other(world: &impl World) -> Verdict {
    let verdict = judged(world, &CANDIDATES).await;
    let terms: Vec<_> = verdict.terms.iter().map(|term| (&*term.holder, term.transitions)).collect();
    assert_eq!(terms, [(CANDIDATES[0], 0), (CANDIDATES[1], 1), (CANDIDATES[2], 2)]);
    assert!(CANDIDATES.iter().all(|user| verdict.admitted[*user] > 0), "{:?}", verdict.admitted);
    verdict
}

pub async fn client_go_and_candidate_hand_over_both_ways() {
    let world = Real::shared().await;
    prepare(&world).await;
    let mut first = GoCandidate::start(&world, CANDIDATES[0]);
    first.leads(&world, CANDIDATES[0]).await;
    let a = following(&world, CANDIDATES[1]).await;
    assert_eq!(a.candidate().holder().as_deref(), Some(CANDIDATES[0]));
    let _writers = [a.writing(), a.writing(), a.writing()];
    tokio::time::sleep(timing().lease_duration()).await;
    assert!(!a.candidate().is_leader(), "client-go renews");
    first.stop().await;
    a.elected().await;

    let mut last = GoCandidate::start(&world, CANDIDATES[2]);
    last.observes(CANDIDATES[1]).await;
    tokio::time::sleep(timing().lease_duration()).await;
    assert!(a.candidate().is_leader(), "and is seen to renew");
    a.running.stop().await;
    last.leads(&world, CANDIDATES[2]).await;
    assert_eq!(Outsider::of(&world).holder().await, CANDIDATES[2]);
    last.stop().await;
    assert_eq!(Outsider::of(&world).holder().await, "");

    let verdict = one_after_the_other(&world).await;
    assert_eq!(verdict.strays.len(), 0, "{:?}", verdict.strays);
    let handovers = verdict.handovers();
    assert!(handovers.len() == 2 && handovers[0] < DELAY, "{handovers:?}");
}

pub async fn client_go_and_candidate_take_over_after_crashes() {
    let world = Real::shared().await;
    prepare(&world).await;
    let mut first = GoCandidate::start(&world, CANDIDATES[0]);
    first.leads(&world, CANDIDATES[0]).await;
    let a = following(&world, CANDIDATES[1]).await;
    let _writer = a.writing();
    first.process.kill();
    a.elected().await;
    let mut last = GoCandidate::start(&world, CANDIDATES[2]);
    last.observes(CANDIDATES[1]).await;
    a.renews(2).await;
    drop(a);
    last.leads(&world, CANDIDATES[2]).await;
    last.stop().await;

    one_after_the_other(&world).await;
    let late = taken_over(&world, CANDIDATES[0]).await;
    assert!(late < DELAY, "{late:?} after its end");
    taken_over(&world, CANDIDATES[1]).await;
}
