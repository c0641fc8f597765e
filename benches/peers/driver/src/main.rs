//! Plays this crate beside other leader elections on one real kube-apiserver, and says what each of them costs:
//! `make -C benches peers` and `make -C benches cost`. The results go into docs/RESULTS.md,
//! benches/README.md and docs/performance.

mod article;
mod cost;
mod failure;
mod lane;
mod ledger;
mod machine;
mod peer;
mod place;
mod play;
mod plot;
mod record;
mod scenario;
mod site;
mod stats;

use clap::{Parser, Subcommand};
use std::{process::ExitCode, time::Duration};

/// Leader elections beside one another on a real kube-apiserver.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play handovers, crashes and rolling restarts, count requests, and write the results
    Play {
        /// How many rounds of each kind each peer plays
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
    },
    /// Measure builds, binaries, idle processor time and memory, and write the results
    Cost {
        /// For how long the idle candidates are watched
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
        /// How many elections one process has
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
        elections: u32,
        /// Leave out the builds, which take most of the time
        #[arg(long)]
        no_builds: bool,
    },
    /// Write the results of the last play and of the last measurement of costs once more
    Render,
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Play { rounds } => play::run(rounds).await,
        Command::Cost { minutes, elections, no_builds } => {
            cost::run(Duration::from_secs(60 * minutes), elections, !no_builds).await
        }
        Command::Render => article::render_all(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
