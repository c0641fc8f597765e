//! Three replicas share one Lease, and exactly one writes: see `--help`.
//!
//! `acts` is the play, `cast` and `replica` those who play it, `stage` where, `journal` what is noted of it, `view` what
//! one sees of it, `verdict` and `report` what the server says to it, `svg` its picture.
#![expect(unreachable_pub, reason = "the modules of an example are nobody's library")]

mod acts;
mod args;
mod cast;
mod journal;
mod proxy;
mod replica;
mod report;
mod signals;
mod stage;
mod svg;
mod verdict;
mod view;
mod witness;
mod workload;

use crate::{
    acts::Play, args::Options, cast::Cast, journal::Journal, stage::Stage, verdict::Verdict, view::View,
};
use clap::Parser;
use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

/// Whatever went wrong, for the user.
type Failure = Box<dyn Error + Send + Sync>;

const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(options: &Options) -> Result<ExitCode, Failure> {
    // A picture that cannot be written is told before the play, not after it.
    if let Some(file) = &options.svg {
        std::fs::File::create(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let signal = signals::first()?;
    let stage = if options.cluster { Stage::cluster().await? } else { Stage::local().await? };
    let outcome = perform(&stage, options, signal).await;
    match (outcome, stage.clean_up().await) {
        (Err(error), Err(left_over)) => Err(format!("{error}\n{left_over}").into()),
        (Ok(_), Err(left_over)) => Err(left_over),
        (outcome, Ok(())) => outcome,
    }
}

/// Plays, stops the replicas, judges. The stage is cleaned up whatever comes of it.
async fn perform(
    stage: &Stage,
    options: &Options,
    signal: impl Future<Output = ()>,
) -> Result<ExitCode, Failure> {
    let cast = Arc::new(Cast::new(stage));
    let journal = Arc::new(Journal::new());
    let mut view = View::new(stage, options.plain);
    let play = Play { stage, cast: &cast, journal: &journal };
    let played = tokio::select! {
        played = play.play() => Some(played),
        () = signal => None,
        () = view.show(cast.clone(), journal.clone()) => None,
    };
    journal.ends(&cast);
    stage.cut_off(false).await;
    let stuck = cast.stop().await;
    // A terminal that is gone takes nothing away from the verdict.
    let _ = view.draw(&journal);
    drop(view);

    let log = match stage.write_log().await {
        Ok(log) => log,
        Err(error) => {
            // What ended the play is likely the reason.
            let first = played.and_then(Result::err).map(|it| format!("{}\n", chain(&*it)));
            let first = first.unwrap_or_default();
            return Err(format!("{first}no verdict: {}", chain(&*error)).into());
        }
    };
    let pages = journal.pages().clone();
    let verdict = Verdict::new(stage, &cast, &pages, &log);
    say(&format!("\n{}", report::report(stage, &verdict)));
    if let Some(file) = &options.svg {
        std::fs::write(file, svg::picture(stage, &journal, &verdict))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if !stuck.is_empty() {
        return Err(format!("did not stop in time: {}", stuck.join(", ")).into());
    }
    if !verdict.offences.is_empty() {
        return Err("a replica has written without holding the lease".into());
    }
    let Some(played) = played else {
        say("interrupted\n");
        return Ok(INTERRUPTED.into());
    };
    played.map(|()| ExitCode::SUCCESS)
}

/// Prints, if there is still somebody to read it: a closed pipe must not keep the stage from being cleaned up.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// An error with its causes, outermost first.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
