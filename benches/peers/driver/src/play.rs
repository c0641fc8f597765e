//! Plays every scenario with every peer. Each pair has a lane, and all lanes run at once: a lane waits most of the time.

use crate::{
    article,
    failure::Failure,
    lane::Lane,
    machine,
    peer::Peer,
    record::{PLAY, Records, Round, Scenario},
    scenario::{Values, crash, handover, rollout, steady},
    site::Site,
    stats::time,
};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::timeout};

const REPLICAS: usize = 3;

/// A replica may have ended long ago, and none has the name of one that ended just now.
const ROLLOUT_SEATS: usize = 8;

/// Between the writes of a leader in a rolling restart. The longest gap cannot be shorter.
const EVERY: Duration = Duration::from_millis(50);

/// After this a round has failed.
const ROUND: Duration = Duration::from_secs(180);

/// After so many failures one after the other, a lane gives up.
const PATIENCE: u32 = 4;

/// Longer than all that a lane needs, by far.
const START: Duration = Duration::from_secs(120);

pub(crate) async fn run(rounds: u32) -> Result<(), Failure> {
    let conditions = machine::conditions(&format!("make -C benches peers ROUNDS={rounds}"));
    let records = Arc::new(Records::create(PLAY, &conditions)?);
    let site = Arc::new(Site::open().await?);
    let mut lanes = JoinSet::new();
    for scenario in [Scenario::Handover, Scenario::Crash, Scenario::Rollout, Scenario::Steady] {
        for peer in Peer::ALL {
            let run = Run { site: site.clone(), records: records.clone(), peer, scenario, rounds };
            lanes.spawn(
                async move { run.play().await.map_err(|error| format!("{peer} {scenario:?}: {error}")) },
            );
        }
    }
    let mut failures = 0;
    while let Some(ended) = lanes.join_next().await {
        match ended.map_err(|panic| panic.to_string()).flatten() {
            Ok(count) => failures += count,
            Err(error) => {
                println!("a lane ended: {error}");
                failures += 1;
            }
        }
    }
    article::render_play()?;
    if failures > 0 {
        return Err(format!("{failures} failures; all other results are written").into());
    }
    Ok(())
}

/// One peer in one scenario.
struct Run {
    site: Arc<Site>,
    records: Arc<Records<Round>>,
    peer: Peer,
    scenario: Scenario,
    rounds: u32,
}

impl Run {
    /// How many rounds have failed.
    async fn play(self) -> Result<u32, Failure> {
        let (every, seats) = match self.scenario {
            Scenario::Rollout => (EVERY, ROLLOUT_SEATS),
            _ => (Duration::ZERO, REPLICAS),
        };
        let opened = Lane::open(&self.site, self.peer, every, seats, REPLICAS);
        let mut lane = timeout(START, opened).await.map_err(|_| "its candidates did not start")??;
        let rounds = if self.scenario == Scenario::Steady { 1 } else { self.rounds };
        let (mut failures, mut in_a_row) = (0, 0);
        for number in 1..=rounds {
            let bound = ROUND + self.window();
            let outcome = timeout(bound, self.round(&mut lane)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(format!("no result within {bound:?}").into()));
            self.keep(number, &outcome)?;
            if outcome.is_ok() {
                in_a_row = 0;
                continue;
            }
            (failures, in_a_row) = (failures + 1, in_a_row + 1);
            if in_a_row == PATIENCE {
                return Err(format!("gives up in round {number}, after {in_a_row} failures in a row").into());
            }
            timeout(START, lane.reset(REPLICAS))
                .await
                .map_err(|_| "its candidates did not start again")??;
        }
        if lane.restarts > 0 {
            println!(
                "{} {:?}: {} processes ended by themselves and were started again",
                self.peer, self.scenario, lane.restarts
            );
        }
        Ok(failures)
    }

    async fn round(&self, lane: &mut Lane) -> Result<Values, Failure> {
        match self.scenario {
            Scenario::Handover => handover(lane).await,
            Scenario::Crash => crash(lane).await,
            Scenario::Rollout => rollout(lane).await,
            Scenario::Steady => steady(lane, self.window()).await,
        }
    }

    /// For how long requests are counted: shorter in a short trial.
    fn window(&self) -> Duration {
        match self.scenario {
            Scenario::Steady => Duration::from_secs((u64::from(self.rounds) * 10).clamp(30, 300)),
            _ => Duration::ZERO,
        }
    }

    fn keep(&self, number: u32, outcome: &Result<Values, Failure>) -> Result<(), Failure> {
        let (values, failure) = match outcome {
            Ok(values) => (values.clone(), None),
            Err(error) => (Values::new(), Some(error.to_string())),
        };
        let words: Vec<String> = values
            .iter()
            .map(|(name, value)| match self.scenario {
                Scenario::Steady => format!("{name} {value:.1} a minute"),
                _ if name == "handovers" => format!("{value} handovers"),
                _ => format!("{name} {}", time(*value)),
            })
            .collect();
        println!(
            "{} {:?} {number}/{} {}: {}",
            jiff::Zoned::now().strftime("%H:%M:%S"),
            self.scenario,
            if self.scenario == Scenario::Steady { 1 } else { self.rounds },
            self.peer,
            failure.as_ref().map_or(words.join(", "), |it| format!("FAILED: {it}")),
        );
        self.records.add(&Round { peer: self.peer, scenario: self.scenario, number, values, failure })
    }
}
