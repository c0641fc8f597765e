//! Two candidates, a database, and a leader that freezes between its admission and its statement: `cargo run --package
//! fencing-example`. See `--help` for its options.
//!
//! `store` is the part to copy: a statement that compares the fencing token. `replica` is one candidate, as a process of
//! its own. `show` runs two of them and freezes one.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a program")]
#![expect(clippy::doc_markdown, reason = "SQLite is a name, and the help shows these comments")]

mod replica;
mod show;
mod store;

use clap::{Parser, Subcommand};
use std::{error::Error, process::ExitCode};

/// Any failure of the example.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Shows what a fencing token is for: a leader freezes between its admission and its statement, another replica takes
/// over and writes, and the first one wakes and sends its statement.
///
/// Exit status 1 if the late statement changed something.
#[derive(Parser)]
#[command(name = "fencing")]
struct Args {
    #[command(subcommand)]
    part: Option<Part>,

    #[command(flatten)]
    options: Options,
}

#[derive(clap::Args, Clone)]
struct Options {
    /// The database: a path of a file for SQLite, or `postgres://USER@HOST/NAME`. By default a temporary file
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,

    /// Send statements that do not compare the token, to see what happens then
    #[arg(long, global = true)]
    without_token: bool,
}

#[derive(Subcommand)]
enum Part {
    /// Be one candidate, which obeys commands on its standard input
    #[command(hide = true)]
    Replica {
        /// The name of the candidate
        name: String,
        /// The address of the API server
        server: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Args { part, options } = Args::parse();
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let outcome = match part {
        Some(Part::Replica { name, server }) => replica::run(&name, &server, &options).await.map(|()| true),
        None => show::play(&options).await,
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
