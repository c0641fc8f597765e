//! Handovers, crashes and a mass start of one crowd.

use crate::{
    Outcome,
    server::{Count, cpu_time, own_cpu_time},
};
use jiff::Timestamp;
use kube_leader_gate::{Candidate, Election, Identity, LeaseTiming, election::Running};
use std::{
    thread,
    time::{Duration, Instant},
};
use test_support::apiserver::{Assets, Audit, AuditEvent, Cluster};
use tokio::time::sleep;

/// Long enough for the followers to know the leader, and to send nothing more.
const SETTLES: Duration = Duration::from_millis(2_500);
/// How long the requests of a handover are counted.
const COUNTED: Duration = Duration::from_millis(1_500);
/// The server has users for so many.
const USERS: usize = 32;

pub(crate) async fn measure(
    assets: &'static Assets,
    candidates: usize,
    rounds: usize,
    crashes: usize,
) -> Outcome<()> {
    let cluster = Cluster::start(assets).await;
    let mut race = Race { audit: cluster.audit(), cluster: &cluster, running: Vec::new(), joined: 0 };
    race.mass_start(candidates).await?;
    race.steady().await?;
    race.all_handovers(rounds).await?;
    race.crashes(crashes).await
}

struct Race<'a> {
    cluster: &'a Cluster,
    audit: Audit,
    running: Vec<Running>,
    joined: usize,
}

impl Race<'_> {
    fn build(&mut self) -> Outcome<Election> {
        self.joined += 1;
        let config = self.cluster.config(&format!("candidate-{}", self.joined % USERS));
        let identity = Identity::new(format!("replica-{}", self.joined))?;
        Ok(Election::builder("default", "crowd")
            .identity(identity)
            .timing(LeaseTiming::fast())
            .build(&config)?)
    }

    async fn mass_start(&mut self, candidates: usize) -> Outcome<()> {
        let elections = (0..candidates).map(|_| self.build()).collect::<Outcome<Vec<_>>>()?;
        let began = Instant::now();
        self.running.extend(elections.into_iter().map(Election::start));
        let opened = self.opens(None).await?.0;
        let took = opened.duration_since(began);
        self.all_follow().await?;
        let followed = began.elapsed();
        sleep(SETTLES).await;
        let count = self.count();
        self.row("mass start", &mut [took], &count, 1, &format!("all know the leader after {followed:.1?}"));
        Ok(())
    }

    /// A crowd in which nothing happens.
    async fn steady(&mut self) -> Outcome<()> {
        const TIME: Duration = Duration::from_secs(10);
        sleep(SETTLES).await;
        self.audit.read();
        let (server, own) = (cpu_time(self.cluster)?, own_cpu_time()?);
        sleep(TIME).await;
        let (server, own) =
            (cpu_time(self.cluster)?.saturating_sub(server), own_cpu_time()?.saturating_sub(own));
        let cost = format!("{TIME:?}; CPU of the server {server:.1?}, of the candidates {own:.1?}");
        let count = self.count();
        self.row("steady", &mut [], &count, 1, &cost);
        Ok(())
    }

    /// The candidates learn in the first how many they are, so it has a row of its own.
    async fn all_handovers(&mut self, rounds: usize) -> Outcome<()> {
        self.handovers("first handover", rounds.min(1)).await?;
        self.handovers("later handovers", rounds.saturating_sub(1)).await
    }

    async fn handovers(&mut self, row: &str, rounds: usize) -> Outcome<()> {
        if rounds == 0 {
            return Ok(());
        }
        let (mut gaps, mut total) = (Vec::new(), Count::default());
        let began = Instant::now();
        for _ in 0..rounds {
            let leader = self.leader().ok_or("no leader")?;
            self.audit.read();
            let stopped = self.running.swap_remove(leader);
            let stops = tokio::spawn(stopped.stop());
            let opened = self.opens(None).await?.1;
            stops.await?;
            sleep(COUNTED).await;
            let count = self.count();
            let released = count.released.ok_or("the release is not in the audit log")?;
            gaps.push(Duration::try_from(opened.duration_since(released)).unwrap_or_default());
            total = total.plus(&count);
            self.replace().await?;
        }
        self.row(row, &mut gaps, &total, rounds, &format!("{:.0?}", began.elapsed()));
        Ok(())
    }

    async fn crashes(&mut self, rounds: usize) -> Outcome<()> {
        if rounds == 0 {
            return Ok(());
        }
        let (mut gaps, mut total) = (Vec::new(), Count::default());
        let began = Instant::now();
        for _ in 0..rounds {
            let leader = self.leader().ok_or("no leader")?;
            // Its next renewal is not due for a while.
            sleep(Duration::from_millis(100)).await;
            let crashed = self.running.swap_remove(leader);
            drop(crashed);
            self.audit.read();
            let opened = self.opens(None).await?.1;
            sleep(COUNTED).await;
            let events = self.audit.read();
            // The last renewal of the holder that crashed.
            let log = self.cluster.audit().read();
            let old = |it: &AuditEvent| opened.duration_since(it.stage_timestamp).as_secs() >= 14;
            let log: Vec<_> = log.into_iter().filter(old).collect();
            let last = Count::of(&log).renewed.ok_or("no renewal in the audit log")?.1;
            let gap = Duration::try_from(opened.duration_since(last)).unwrap_or_default();
            gaps.push(gap.saturating_sub(LeaseTiming::fast().lease_duration()));
            total = total.plus(&Count::of(&events));
            self.replace().await?;
        }
        self.row("crash, from the expiry", &mut gaps, &total, rounds, &format!("{:.0?}", began.elapsed()));
        Ok(())
    }

    /// The lease requests since the last look.
    fn count(&mut self) -> Count {
        Count::of(&self.audit.read())
    }

    /// Starts a new candidate for one that has gone.
    async fn replace(&mut self) -> Outcome<()> {
        let fresh = self.build()?.start();
        self.running.push(fresh);
        self.all_follow().await?;
        sleep(SETTLES).await;
        Ok(())
    }

    fn leader(&self) -> Option<usize> {
        self.running.iter().position(|it| it.candidate().is_leader())
    }

    /// Waits until a candidate leads. A thread of its own looks, so that the candidates' threads do nothing for it.
    async fn opens(&self, former: Option<usize>) -> Outcome<(Instant, Timestamp)> {
        let candidates: Vec<Candidate> = self.running.iter().map(|it| it.candidate().clone()).collect();
        let pause = Duration::from_micros(100 + candidates.len() as u64);
        let looks = tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(120) {
                let leads = |(place, it): (usize, &Candidate)| Some(place) != former && it.is_leader();
                if candidates.iter().enumerate().any(leads) {
                    return Some((Instant::now(), Timestamp::now()));
                }
                thread::sleep(pause);
            }
            None
        });
        Ok(looks.await?.ok_or("no candidate leads")?)
    }

    async fn all_follow(&self) -> Outcome<()> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(120) {
            if let Some(leader) = self.leader() {
                let name = self.running[leader].candidate().identity().as_str().to_owned();
                let knows = |it: &Running| it.candidate().holder().as_deref() == Some(&*name);
                if self.running.iter().all(knows) {
                    return Ok(());
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err("the candidates do not all know the leader".into())
    }

    fn row(&self, what: &str, times: &mut [Duration], count: &Count, rounds: usize, more: &str) {
        times.sort_unstable();
        let time = match (times.first(), times.get(times.len() / 2), times.last()) {
            (Some(least), Some(median), Some(most)) => format!("{least:.1?} / {median:.1?} / {most:.1?}"),
            _ => String::new(),
        };
        let float = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let per = |number| float(number) / float(rounds);
        let candidates = self.running.len();
        println!(
            "| {what} | {candidates} | {time} | {:.1} ({:.1}) | {:.1} | {more} |",
            per(count.writes),
            per(count.refused),
            per(count.reads)
        );
    }
}
