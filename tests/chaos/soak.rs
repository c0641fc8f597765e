//! Minutes of faults for processes that live on: what they use stays flat.

use crate::{
    Failure,
    apiserver::Assets,
    args::{Candidates, Soak},
    elector::Pace,
    faults,
    journal::Journal,
    plan::{Frame, Kind, plan},
    stage::Stage,
    usage::{Sample, grown, logged},
};
use serde_json::json;
use std::{fmt::Write, time::Duration};
use tokio::time::Instant;

const PACE: Pace = Pace { writers: 4, every: Duration::from_millis(20), restless: false };
/// More faults than fit into an hour.
const STEPS: usize = 2_000;

/// The error names what has grown, or what must not happen under any fault.
pub async fn run(assets: &'static Assets, options: &Soak) -> Result<(), Failure> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let Candidates { count, timing, elector, .. } = &options.candidates;
    let script = plan(&Frame {
        seed,
        steps: STEPS,
        kinds: &Kind::enduring(),
        candidates: (*count).into(),
        timing: *timing,
        holder_only: false,
    });
    println!("soak --minutes {} --seed {seed} --timing {timing} --elector {elector}", options.minutes);
    let journal = Journal::create(None, &format!("soak-{seed}-{elector}"))?;
    let stage = Stage::set(assets, &options.candidates, PACE, journal).await?;
    let (began, whole) = (Instant::now(), Duration::from_secs(options.minutes * 60));
    let (mut samples, mut played) = (Vec::new(), Vec::new());
    for step in script {
        let (more, outcome) = faults::play(&stage, &[step]).await;
        played.extend(more);
        outcome?;
        // A candidate leads and writes again, so no connection of the fault is left, and no backlog.
        samples.push(sample(&stage, began, played.len())?);
        if began.elapsed() > whole {
            break;
        }
    }
    let mut failures: Vec<_> = stage.roster.stop_all(stage.stop_bound()).await;
    let overlaps = stage.report(&played)?.overlaps();
    print!("{}", table(&samples));
    println!("{} faults, {overlaps} writes by a candidate that another had replaced", played.len());
    if overlaps > 0 {
        failures.push("SAFETY: a candidate has written after another had taken the lease".into());
    }
    failures.extend(grown(&samples).into_iter().map(Failure::from));
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").into())
}

fn sample(stage: &Stage, began: Instant, faults: usize) -> Result<Sample, Failure> {
    let usages = (0..stage.roster.len()).map(|seat| stage.roster.usage(seat)).collect::<Result<_, _>>()?;
    let sample = Sample { at: began.elapsed().as_secs(), faults: faults as u64, usages };
    stage.journal.note("sample", json!({ "faults": faults, "usages": format!("{:?}", sample.usages) }));
    Ok(sample)
}

/// A row for each tenth of the time: the most of any candidate.
fn table(samples: &[Sample]) -> String {
    let mut text =
        "| minutes | faults | memory (MiB) | descriptors | threads | tasks | log for each fault (bytes) |\n\
                    | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for part in samples.chunks(samples.len().div_ceil(10).max(1)) {
        let most = |of: fn(&crate::usage::Usage) -> u64| {
            part.iter().flat_map(|it| &it.usages).map(of).max().unwrap_or_default()
        };
        let last = part.last().map_or((0, 0), |it| (it.at, it.faults));
        let _ = writeln!(
            text,
            "| {}:{:02} | {} | {}.{} | {} | {} | {} | {} |",
            last.0 / 60,
            last.0 % 60,
            last.1,
            most(|it| it.memory) / 1024,
            most(|it| it.memory) % 1024 * 10 / 1024,
            most(|it| it.descriptors),
            most(|it| it.threads),
            most(|it| it.tasks),
            logged(part),
        );
    }
    text
}
