//! A run of the script, from the server's start to the verdict.

use crate::{
    Failure,
    apiserver::Assets,
    args::{Candidates, Faults},
    elector::{Elector, Layers, Pace},
    faults,
    journal::Journal,
    plan::{Frame, Kind, plan},
    stage::Stage,
    table,
};
use serde_json::json;
use std::time::Duration;

const PACE: Pace = Pace { writers: 4, every: Duration::from_millis(20), restless: false };

/// The script for `cargo test`: about half a minute.
pub fn short() -> Faults {
    Faults {
        count: 7,
        seed: Some(1),
        candidates: Candidates {
            count: 3,
            timing: "4/2.5/0.5".parse().expect("a timing"),
            elector: Elector::Gate,
            layers: Layers { fence: true, request_deadline: true },
        },
        kinds: vec![
            Kind::Kill,
            Kind::Freeze,
            Kind::Stop,
            Kind::Blackhole,
            Kind::Steal,
            Kind::Restart,
            Kind::SlowUplink,
        ],
        holder_only: false,
        timeline: None,
    }
}

/// The error names what must not happen: an overlap, an election that does not progress, or a candidate that ended by
/// itself.
pub async fn run(assets: &'static Assets, options: &Faults) -> Result<(), Failure> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let Candidates { count, timing, elector, .. } = &options.candidates;
    let kinds = if options.kinds.is_empty() { Kind::all() } else { options.kinds.clone() };
    let plan = plan(&Frame {
        seed,
        steps: options.count,
        kinds: &kinds,
        candidates: (*count).into(),
        timing: *timing,
        holder_only: options.holder_only,
    });
    println!("{}", table::again(options, seed));
    let journal = Journal::create(options.timeline.as_deref(), &format!("{seed}-{elector}"))?;
    journal.note("script", json!({ "options": table::again(options, seed) }));
    let stage = Stage::set(assets, &options.candidates, PACE, journal).await?;
    let (played, outcome) = faults::play(&stage, &plan).await;
    stage.mend();
    let mut failures: Vec<Failure> = outcome.err().into_iter().collect();
    failures.extend(stage.roster.stop_all(stage.stop_bound()).await);
    match stage.report(&played) {
        Ok(report) => {
            report.note(&stage.journal);
            print!("{}", table::table(options, seed, &report, stage.roster.counts(), &stage.journal));
            if report.overlaps() > 0 {
                failures.push("SAFETY: a candidate has written after another had taken the lease".into());
            }
        }
        Err(error) => failures.push(format!("no verdict: {error}").into()),
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").into())
}
