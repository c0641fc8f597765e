//! Three replicas share one Lease, and exactly one writes: see `--help`.
//!
//! `acts` is the play; `cast` and `replica` are the players; `stage` is where they play. `journal` records the play,
//! `view` shows it live, `verdict` and `report` say what the server saw, and `svg` draws it.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a program")]

mod acts;
mod args;
mod cast;
mod journal;
mod replica;
mod report;
mod stage;
mod svg;
mod verdict;
mod view;
mod workload;

use crate::{
    acts::Play, args::Options, cast::Cast, journal::Journal, stage::Stage, verdict::Verdict, view::View,
};
use kube_leader_gate::shutdown_signal;
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
    let outcome = Options::read(std::env::args_os().skip(1))
        .and_then(|options| options.map_or(Ok(ExitCode::SUCCESS), |options| run(&options)));
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", chain(&*error));
        ExitCode::FAILURE
    })
}

/// Plays, stops the replicas and judges.
#[tokio::main(flavor = "current_thread")]
async fn run(options: &Options) -> Result<ExitCode, Failure> {
    // A picture that cannot be written must fail before the play, not after it.
    if let Some(file) = &options.svg {
        std::fs::File::create(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let stopped = shutdown_signal()?;
    let stage = Stage::new().await?;
    let cast = Arc::new(Cast::new(&stage));
    let journal = Arc::new(Journal::new());
    let mut view = View::new(&stage, options.plain);
    let play = Play { stage: &stage, cast: &cast, journal: &journal };
    let played = tokio::select! {
        played = play.play() => Some(played),
        () = stopped => None,
        () = view.show(cast.clone(), journal.clone()) => None,
    };
    journal.ends(&cast);
    stage.reconnect().await;
    let stuck = cast.stop().await;
    // The verdict counts even when the terminal is gone.
    let _ = view.draw(&journal);
    drop(view);

    let verdict = Verdict::new(&stage, &cast, &journal.pages().clone(), &stage.write_log());
    say(&format!("\n{}", report::report(&verdict)));
    if let Some(file) = &options.svg {
        std::fs::write(file, svg::picture(&stage, &journal, &verdict))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if !stuck.is_empty() {
        return Err(format!("did not stop in time: {}", stuck.join(", ")).into());
    }
    if !verdict.offences.is_empty() {
        return Err("a replica wrote without holding the lease".into());
    }
    let Some(played) = played else {
        say("interrupted\n");
        return Ok(INTERRUPTED.into());
    };
    played?;
    say(report::LAST_WORDS);
    Ok(ExitCode::SUCCESS)
}

/// Prints if the output is still open. A closed pipe must not change the exit status.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// An error with its causes, outermost first.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
