//! A process with client-go's elector.

use crate::{
    apiserver::{Cluster, Guarded, program},
    real::Real,
    support::{PATIENCE, until},
    world::World,
};
use kube_leader_gate::LeaseTiming;
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
pub fn timing() -> LeaseTiming {
    LeaseTiming::new(Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(1))
        .expect("a valid timing")
}

/// A process with client-go's elector, which writes while it leads.
pub struct GoCandidate {
    pub process: Guarded,
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
    pub fn start(world: &Real<&'static Cluster>, user: &str) -> Self {
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
    pub async fn leads(&self, world: &impl World, user: &str) {
        self.has_led(1).await;
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

    /// Waits until the process has begun to lead this often.
    pub async fn has_led(&self, times: usize) {
        let led = || self.events().iter().filter(|event| event.event == "leading").count();
        until("client-go leads", async || led() >= times).await;
    }

    /// The last holder that it has named.
    pub async fn observes(&self, holder: &str) {
        let last = || self.events().iter().filter_map(|event| event.holder.clone()).next_back();
        until(&format!("client-go observes {holder}"), async || last().as_deref() == Some(holder)).await;
    }

    /// Stops it with a signal, in order.
    pub async fn stop(&mut self) {
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
