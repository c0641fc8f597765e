//! The candidates' processes.

use crate::{
    Failure, apiserver::Cluster, apiserver::Guarded, elector::Recipe, journal::Journal, proxy::Proxy,
    usage::Usage,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    ops::AddAssign,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

#[derive(Debug)]
pub struct Roster {
    seats: Vec<Seat>,
    recipe: Recipe,
    journal: Arc<Journal>,
}

/// One candidate, over all its lives.
#[derive(Debug)]
struct Seat {
    identity: String,
    line: Proxy,
    kubeconfig: PathBuf,
    stderr: PathBuf,
    life: Mutex<Option<Life>>,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Life {
    process: Guarded,
    /// Reads its output to the end.
    reader: JoinHandle<Counts>,
    /// How many tasks it had when it last told.
    tasks: Arc<AtomicU64>,
}

/// The candidates' own counts of their writes. For a killed process, up to its last second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub written: u64,
    pub rejected: u64,
    pub cut_off: u64,
    pub failed: u64,
    /// Dropped with their workload, or open when the process ended.
    pub unanswered: u64,
}

impl Roster {
    /// Candidates that have not been started.
    pub async fn new(cluster: &Cluster, recipe: Recipe, journal: Arc<Journal>) -> Result<Self, Failure> {
        let mut seats = Vec::new();
        for identity in recipe.contest().users.clone() {
            let line = Proxy::to(cluster.addr()).await?;
            let kubeconfig = cluster.kubeconfig(&identity, &line.url());
            let stderr = cluster.folder().join(format!("{identity}.log"));
            let counts = Mutex::default();
            seats.push(Seat { identity, line, kubeconfig, stderr, life: Mutex::new(None), counts });
        }
        Ok(Self { seats, recipe, journal })
    }

    pub fn len(&self) -> usize {
        self.seats.len()
    }

    pub fn identities(&self) -> Vec<String> {
        self.seats.iter().map(|it| it.identity.clone()).collect()
    }

    pub fn identity(&self, seat: usize) -> &str {
        &self.seats[seat].identity
    }

    pub fn seat(&self, identity: &str) -> Option<usize> {
        self.seats.iter().position(|it| it.identity == identity)
    }

    pub fn line(&self, seat: usize) -> &Proxy {
        &self.seats[seat].line
    }

    pub fn start(&self, seat: usize) -> Result<(), Failure> {
        let Seat { identity, kubeconfig, stderr, .. } = &self.seats[seat];
        let command = self.recipe.command(identity, kubeconfig);
        let log = File::options().create(true).append(true).open(stderr)?;
        let mut process = Guarded::spawn_with(&command, Stdio::piped(), log.into())
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let stdout = process.stdout().ok_or("a candidate without an output")?;
        let (journal, name, tasks) = (self.journal.clone(), identity.clone(), Arc::<AtomicU64>::default());
        let told = tasks.clone();
        let reader = thread::spawn(move || listen(stdout, &name, &journal, &told));
        *self.seats[seat].life() = Some(Life { process, reader, tasks });
        Ok(())
    }

    pub fn signal(&self, seat: usize, signal: Signal) {
        if let Some(life) = &mut *self.seats[seat].life() {
            life.process.signal(signal);
        }
    }

    pub fn kill(&self, seat: usize) {
        let Some(mut life) = self.seats[seat].life().take() else { return };
        life.process.kill();
        self.seats[seat].ended(life);
    }

    /// Sends SIGTERM, and waits for the end of the process.
    pub async fn stop(&self, seat: usize, bound: Duration) -> Result<(), Failure> {
        let Some(mut life) = self.seats[seat].life().take() else { return Ok(()) };
        life.process.signal(Signal::TERM);
        let status = life.process.ended(bound).await;
        life.process.kill();
        self.seats[seat].ended(life);
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.seats[seat].last_words(&format!("ended with {status} on SIGTERM"))),
            None => Err(self.seats[seat].last_words(&format!("still ran {bound:?} after SIGTERM"))),
        }
    }

    /// Stops all at once.
    pub async fn stop_all(&self, bound: Duration) -> Vec<Failure> {
        let stops = (0..self.len()).map(|seat| self.stop(seat, bound));
        futures_util::future::join_all(stops).await.into_iter().filter_map(Result::err).collect()
    }

    /// The error names a candidate that ended by itself.
    pub fn check(&self) -> Result<(), Failure> {
        for seat in &self.seats {
            if let Some(life) = &mut *seat.life()
                && let Ok(Some(status)) = life.process.try_wait()
            {
                return Err(seat.last_words(&format!("ended by itself, with {status}")));
            }
        }
        Ok(())
    }

    /// What a candidate uses now.
    pub fn usage(&self, seat: usize) -> Result<Usage, Failure> {
        let Seat { identity, stderr, .. } = &self.seats[seat];
        let life = self.seats[seat].life();
        let life = life.as_ref().ok_or_else(|| format!("{identity} does not run"))?;
        let logged = fs::metadata(stderr)?.len();
        Usage::of(life.process.pid(), life.tasks.load(Ordering::Relaxed), logged)
    }

    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for seat in &self.seats {
            sum += *lock(&seat.counts);
        }
        sum
    }
}

impl Seat {
    fn life(&self) -> MutexGuard<'_, Option<Life>> {
        lock(&self.life)
    }

    fn ended(&self, life: Life) {
        // Its output has ended with it.
        *lock(&self.counts) += life.reader.join().unwrap_or_default();
    }

    fn last_words(&self, what: &str) -> Failure {
        let log = fs::read_to_string(&self.stderr).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(15).collect();
        let lines = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
        format!("{} {what}; its last words:\n{lines}", self.identity).into()
    }
}

fn listen(stdout: impl Read, identity: &str, journal: &Journal, tasks: &AtomicU64) -> Counts {
    let mut counts = Counts::default();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let event = serde_json::from_str(&line).ok().filter(Value::is_object);
        let mut event = event.unwrap_or_else(|| json!({ "text": line }));
        if event["written"].is_u64() {
            counts = Counts::of(&event);
            tasks.store(event["tasks"].as_u64().unwrap_or_default(), Ordering::Relaxed);
        }
        if event["event"] != "counts" {
            event["what"] = "candidate".into();
            event["identity"] = identity.into();
            journal.write(&event);
        }
    }
    counts
}

impl Counts {
    fn of(event: &Value) -> Self {
        let count = |name: &str| event[name].as_u64().unwrap_or_default();
        Self {
            written: count("written"),
            rejected: count("rejected"),
            cut_off: count("cut_off"),
            failed: count("failed"),
            unanswered: count("unanswered"),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.written += other.written;
        self.rejected += other.rejected;
        self.cut_off += other.cut_off;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
