//! Plays the script.

use crate::{
    Failure,
    plan::{Fault, Kind, Step, Target},
    proxy::Mode,
    stage::Stage,
};
use futures_util::future::try_join_all;
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A step as it was played.
#[derive(Debug)]
pub struct Played {
    pub label: String,
    pub begun: Instant,
}

/// Plays all steps, or stops after the first one after which no candidate leads.
pub async fn play(stage: &Stage, plan: &[Step]) -> (Vec<Played>, Result<(), Failure>) {
    let mut played = Vec::new();
    let outcome = async {
        stage.settled(Instant::now()).await?;
        for (number, step) in plan.iter().enumerate() {
            sleep(step.pause).await;
            let begun = Instant::now();
            played.push(Played { label: step.label(), begun });
            stage.journal.note("fault", json!({ "number": number, "step": step, "holder": stage.holder() }));
            let acted = act_all(stage, step).await;
            acted.map_err(|error| format!("fault {number}, {}: {error}", step.label()))?;
            let over = Instant::now();
            stage.journal.note("over", json!({ "number": number }));
            let leader = stage.settled(over).await;
            let leader =
                leader.map_err(|error| format!("after fault {number}, {}: {error}", step.label()))?;
            stage
                .journal
                .note("settled", json!({ "number": number, "leader": stage.roster.identity(leader) }));
        }
        Ok(())
    }
    .await;
    (played, outcome)
}

async fn act_all(stage: &Stage, step: &Step) -> Result<(), Failure> {
    // Both faults of a step are for the holder at its beginning. The script waits until there is one.
    let holder = stage.holder().unwrap_or_default();
    try_join_all(step.faults.iter().map(|fault| act(stage, fault, fault.target.seat(holder)))).await.map(drop)
}

async fn act(stage: &Stage, fault: &Fault, seat: usize) -> Result<(), Failure> {
    sleep(fault.after).await;
    let Stage { roster, site, .. } = stage;
    match fault.kind {
        Kind::Kill => {
            roster.kill(seat);
            sleep(fault.length).await;
            start(stage, seat).await
        }
        Kind::Stop => {
            roster.stop(seat, stage.stop_bound()).await?;
            sleep(fault.length).await;
            start(stage, seat).await
        }
        Kind::Freeze => {
            roster.signal(seat, Signal::STOP);
            sleep(fault.length).await;
            roster.signal(seat, Signal::CONT);
            Ok(())
        }
        Kind::Cut => disturb(stage, seat, Mode::Cut, fault.length).await,
        Kind::Blackhole => disturb(stage, seat, Mode::Blackhole, fault.length).await,
        Kind::HoldUp | Kind::Late => disturb(stage, seat, Mode::HoldUp, fault.length).await,
        Kind::HoldDown => disturb(stage, seat, Mode::HoldDown, fault.length).await,
        Kind::Delay => disturb(stage, seat, Mode::Delay(fault.delay), fault.length).await,
        Kind::SlowUplink => slow_uplink(stage, seat, fault).await,
        Kind::Steal => stage.steal(fault.length).await,
        Kind::Delete => stage.delete_lease().await,
        Kind::Restart => {
            site.cluster.restart().await;
            Ok(())
        }
        Kind::FreezeServer => {
            site.cluster.freeze();
            sleep(fault.length).await;
            site.cluster.thaw();
            Ok(())
        }
    }
}

async fn disturb(stage: &Stage, seat: usize, mode: Mode, length: Duration) -> Result<(), Failure> {
    let line = stage.roster.line(seat);
    line.set(mode);
    sleep(length).await;
    line.set(Mode::Open);
    Ok(())
}

/// Writes are open for a while, then the order comes. The line is slow until the process has ended, and the bytes
/// that are then under way arrive at their time. Only after that a new process starts: it takes its own lease back at
/// once, and cannot know what the previous process has sent.
async fn slow_uplink(stage: &Stage, seat: usize, fault: &Fault) -> Result<(), Failure> {
    let roster = &stage.roster;
    roster.line(seat).set(Mode::SlowUp(fault.delay));
    sleep(fault.length).await;
    if fault.drops {
        roster.signal(seat, Signal::INT);
        sleep(fault.length).await;
    }
    roster.stop(seat, stage.stop_bound()).await?;
    roster.line(seat).set(Mode::Open);
    sleep(fault.length.max(fault.delay)).await;
    start(stage, seat).await
}

/// Starts a candidate, and waits until it contends: the next fault must not hit its start.
pub async fn start(stage: &Stage, seat: usize) -> Result<(), Failure> {
    let from = jiff::Timestamp::now();
    stage.roster.start(seat)?;
    stage.contends(seat, from).await
}

impl Target {
    /// The seat that the fault is for, while this one holds the lease.
    fn seat(self, holder: usize) -> usize {
        match self {
            Self::Holder | Self::All => holder,
            Self::Follower(rank) if rank < holder => rank,
            Self::Follower(rank) => rank + 1,
        }
    }
}

impl Step {
    /// The row of the table for this fault.
    fn label(&self) -> String {
        match &*self.faults {
            [fault] if matches!(fault.target, Target::Follower(_)) => format!("{} (follower)", fault.kind),
            [fault] => fault.kind.to_string(),
            _ => "two at once".to_owned(),
        }
    }
}
