//! How long the lease is without a holder after the holder ends, round by round and by the audit log.

use crate::{
    Failure,
    apiserver::Assets,
    args::{Candidates, Rounds},
    elector::Pace,
    faults,
    journal::Journal,
    stage::Stage,
    table::spread,
};
use kube_leader_gate::testing::{Succession, SuccessionKind, Verdict};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Enough to see that a candidate leads.
const PACE: Pace = Pace { writers: 1, every: Duration::from_millis(50), restless: false };

/// How the holder ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Stop,
    Kill,
}

pub async fn run(assets: &'static Assets, options: &Rounds, end: End) -> Result<(), Failure> {
    let Candidates { timing, elector, count, .. } = &options.candidates;
    let journal = Journal::create(options.timeline.as_deref(), &format!("{}-{elector}", end.name()))?;
    let stage = Stage::set(assets, &options.candidates, PACE, journal).await?;
    for round in 0..options.count {
        play(&stage, end, timing.retry_period()).await.map_err(|error| format!("round {round}: {error}"))?;
    }
    // Stopping the candidates hands the lease over too.
    let rounds = stage.verdict();
    let failures = stage.roster.stop_all(stage.stop_bound()).await;
    let report = stage.report(&[])?;
    report.note(&stage.journal);

    let gaps = end.gaps(&rounds);
    let [least, median, most] = spread(&gaps);
    println!(
        "{} at {timing} s, {elector}, {count} candidates: {} of {} rounds, \
         {least:.1?} / {median:.1?} / {most:.1?} (least, median, most); {} overlaps in {} writes\ntimeline: {}",
        end.measure(),
        gaps.len(),
        options.count,
        report.overlaps(),
        report.writes,
        stage.journal.path.display(),
    );
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure);
    }
    if gaps.len() != options.count {
        return Err("a round did not end as planned: see the timeline".into());
    }
    if report.overlaps() > 0 {
        return Err("SAFETY: a candidate has written after another had taken the lease".into());
    }
    Ok(())
}

async fn play(stage: &Stage, end: End, retry: Duration) -> Result<(), Failure> {
    stage.settled(Instant::now()).await?;
    // A random delay, so that a follower that polls is met at any point of its period.
    sleep(retry.mul_f64(1.2 * fastrand::f64())).await;
    let seat = stage.settled(Instant::now()).await?;
    stage.journal.note("ends", json!({ "how": end.name(), "holder": stage.roster.identity(seat) }));
    match end {
        End::Stop => stage.roster.stop(seat, stage.stop_bound()).await?,
        End::Kill => stage.roster.kill(seat),
    }
    stage.settled(Instant::now()).await?;
    faults::start(stage, seat).await
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Stop => "handovers",
            Self::Kill => "crashes",
        }
    }

    fn measure(self) -> &'static str {
        match self {
            Self::Stop => "graceful handover, from the release to the acquisition",
            Self::Kill => {
                "crash takeover, from the lease's end (the last renewal's answer and its duration) to the acquisition"
            }
        }
    }

    fn gaps(self, verdict: &Verdict) -> Vec<Duration> {
        let wanted = match self {
            Self::Stop => SuccessionKind::Graceful,
            Self::Kill => SuccessionKind::Takeover,
        };
        let own: Vec<Succession> = verdict.successions();
        own.into_iter().filter(|it| it.kind == wanted && it.from != it.to).map(|it| it.gap).collect()
    }
}
