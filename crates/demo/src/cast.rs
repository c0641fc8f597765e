//! The three replicas, and waiting for what they do.

use crate::{
    Failure,
    replica::{Replica, State},
    stage::Stage,
    workload::Counts,
};
use kube_leader_gate::leadership::Term;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub const NAMES: [&str; 3] = ["alpha", "bravo", "carol"];
/// The pause between two checks of a condition.
const LOOK: Duration = Duration::from_millis(2);

pub struct Cast {
    pub replicas: Vec<Replica>,
    /// The longest that an act waits for a condition.
    bound: Duration,
}

impl Cast {
    pub fn new(stage: &Stage) -> Self {
        Self {
            replicas: NAMES.map(|name| Replica::new(stage.role(name))).into(),
            bound: stage.timing.lease_duration() * 5,
        }
    }

    /// Waits for the condition, and returns what it found.
    pub async fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T, Failure> {
        let since = Instant::now();
        loop {
            if let Some(found) = found() {
                return Ok(found);
            }
            if since.elapsed() > self.bound {
                return Err(format!("after {:?}, still waiting for: {what}", self.bound).into());
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until a replica leads in a term other than `old`.
    pub async fn next_leader(&self, old: Option<&Term>) -> Result<&Replica, Failure> {
        self.until("a replica leads", || {
            self.replicas.iter().find(|it| it.state() == State::Leads && it.term().as_ref() != old)
        })
        .await
    }

    /// Waits until the replica has done more of something.
    pub async fn more(
        &self,
        replica: &Replica,
        what: &str,
        count: impl Fn(&Counts) -> u64,
    ) -> Result<(), Failure> {
        const MORE: u64 = 20;
        let before = count(&replica.counts());
        let what = format!("{} {what}", replica.name());
        self.until(&what, || (count(&replica.counts()) >= before + MORE).then_some(())).await
    }

    /// Waits until the replica knows the leader.
    pub async fn knows(&self, replica: &Replica, leader: &Replica) -> Result<(), Failure> {
        let what = format!("{} follows {}", replica.name(), leader.name());
        self.until(&what, || {
            let holder = replica.candidate()?.holder()?;
            (*holder == *leader.name()).then_some(())
        })
        .await
    }

    /// Stops all replicas in order. Returns the names of those that did not stop.
    pub async fn stop(&self) -> Vec<&'static str> {
        let mut stuck = Vec::new();
        for replica in &self.replicas {
            if !replica.stop().await {
                stuck.push(replica.name());
            }
        }
        stuck
    }
}
