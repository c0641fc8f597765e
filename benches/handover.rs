//! How long a lease stays without a leader, over real HTTP and by the server's own log: a graceful handover at the default
//! timing, and a crash takeover after the expiry. `cargo bench --bench handover [ROUNDS]`.

use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::Running,
    testing::{ApiServer, Endpoint, WriteRecord},
};
use std::{error::Error, time::Duration};
use tokio::time::{Instant, sleep, timeout};

type Outcome<T> = Result<T, Box<dyn Error>>;

const CANDIDATES: usize = 3;

#[tokio::main]
async fn main() -> Outcome<()> {
    // Cargo hands `--bench` on.
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(30);
    report("graceful handover at 137/107/26 s, release to acquisition", &graceful(rounds).await?);
    report("crash takeover at 1/0.7/0.1 s, expiry to acquisition", &crash(rounds).await?);
    Ok(())
}

async fn graceful(rounds: usize) -> Outcome<Vec<Duration>> {
    let server = ApiServer::new();
    let endpoint = server.serve().await?;
    let mut race = Race::new(&endpoint, LeaseTiming::default())?;
    for _ in 0..rounds {
        let leader = race.leader().await?;
        race.replace(leader)?.stop().await;
        race.leader().await?;
    }
    let holder = |write: &WriteRecord| write.lease.as_ref().map(|lease| lease.holder_identity.is_empty());
    Ok(between(&server, |before, _| holder(before) == Some(true), Duration::ZERO))
}

async fn crash(rounds: usize) -> Outcome<Vec<Duration>> {
    let server = ApiServer::new();
    let endpoint = server.serve().await?;
    let timing =
        LeaseTiming::new(Duration::from_secs(1), Duration::from_millis(700), Duration::from_millis(100))?;
    let mut race = Race::new(&endpoint, timing)?;
    for _ in 0..rounds {
        let leader = race.leader().await?;
        // A dropped election neither releases nor renews, like a process that was killed.
        drop(race.replace(leader)?);
        sleep(Duration::from_millis(50)).await;
        race.leader().await?;
    }
    let changed = |before: &WriteRecord, after: &WriteRecord| {
        let holder = |write: &WriteRecord| write.lease.as_ref().map(|lease| lease.holder_identity.clone());
        holder(before) != holder(after)
    };
    Ok(between(&server, changed, timing.lease_duration()))
}

struct Race<'a> {
    endpoint: &'a Endpoint,
    timing: LeaseTiming,
    running: Vec<Running>,
    joined: usize,
}

impl<'a> Race<'a> {
    fn new(endpoint: &'a Endpoint, timing: LeaseTiming) -> Outcome<Self> {
        let mut race = Self { endpoint, timing, running: Vec::new(), joined: 0 };
        for _ in 0..CANDIDATES {
            let running = race.join()?;
            race.running.push(running);
        }
        Ok(race)
    }

    fn join(&mut self) -> Outcome<Running> {
        self.joined += 1;
        let identity = format!("candidate-{}", self.joined);
        let election =
            Election::builder("default", "operator").identity(Identity::new(&identity)?).timing(self.timing);
        Ok(election.build(&self.endpoint.config(&identity))?.start())
    }

    /// Starts a new candidate in the place of this one, and returns this one.
    fn replace(&mut self, place: usize) -> Outcome<Running> {
        let fresh = self.join()?;
        Ok(std::mem::replace(&mut self.running[place], fresh))
    }

    /// Waits until one leads and all the others follow it.
    async fn leader(&self) -> Outcome<usize> {
        let settled = async {
            loop {
                let leader = self.running.iter().position(|candidate| candidate.candidate().is_leader());
                if let Some(leader) = leader {
                    let holder = Some(self.running[leader].candidate().identity().as_str());
                    let knows = |candidate: &Running| candidate.candidate().holder().as_deref() == holder;
                    if self.running.iter().all(knows) {
                        return leader;
                    }
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        Ok(timeout(Duration::from_secs(10), settled).await?)
    }
}

/// The times between two consecutive writes of the lease that are such a pair, minus `wait`.
fn between(
    server: &ApiServer,
    pair: impl Fn(&WriteRecord, &WriteRecord) -> bool,
    wait: Duration,
) -> Vec<Duration> {
    let mut writes = server.write_log();
    writes.retain(|write| write.resource == "leases" && write.took_effect());
    let completed = |write: &WriteRecord| write.completed.map(|moment| moment.at);
    let late = |since: Instant, until: Instant| until.saturating_duration_since(since + wait);
    let pairs = writes.windows(2).filter(|writes| pair(&writes[0], &writes[1]));
    pairs.filter_map(|writes| Some(late(completed(&writes[0])?, completed(&writes[1])?))).collect()
}

fn report(what: &str, times: &[Duration]) {
    let mut times = times.to_vec();
    times.sort_unstable();
    match (times.first(), times.get(times.len() / 2), times.last()) {
        (Some(least), Some(median), Some(most)) => {
            println!(
                "{what}: {} rounds, {least:.1?} / {median:.1?} / {most:.1?} (least, median, most)",
                times.len()
            );
        }
        _ => println!("{what}: no rounds"),
    }
}
