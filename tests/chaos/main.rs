//! Candidates under faults on a real kube-apiserver, judged by its audit log: `make chaos`, or
//! `cargo test --test chaos -- --help`. As a part of `cargo test` it plays a short script.
//!
//! `args` are the options; `candidate` is the process that contends, `writers` what it does all the time, `elector` says which one it is, `roster` starts them,
//! `proxy` stands between them and the server; `stage` is the server and its audit log; `plan` writes the script from a
//! seed, `faults` plays it; `report` judges, `table` prints, `journal` keeps everything. `rounds` and `steady` measure
//! without faults.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

#[path = "../apiserver/mod.rs"]
mod apiserver;
mod args;
mod candidate;
mod elector;
mod faults;
mod journal;
mod plan;
mod proxy;
mod report;
mod roster;
mod rounds;
mod script;
mod stage;
mod steady;
mod table;
mod timing;
mod writers;

use crate::args::{Command, Options};
use clap::Parser;
use std::{error::Error, process::ExitCode};

/// Whatever went wrong, for a person.
type Failure = Box<dyn Error + Send + Sync>;

/// The name of the one test that this is for `cargo test`.
const TEST: &str = "chaos";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next() {
        Some(first) if args::is_command(&first) => run(Options::parse().command),
        Some(first) if first == "--list" => {
            println!("{TEST}: test");
            Ok(ExitCode::SUCCESS)
        }
        // A filter comes first, if there is one. All other options of a test are nothing to this one.
        Some(first) if !first.starts_with('-') && !TEST.contains(&first) => {
            eprintln!("{TEST}: {first} is neither this test nor one of its commands: see --help");
            Ok(ExitCode::SUCCESS)
        }
        _ => run(Command::Faults(script::short())),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    if let Command::Candidate(options) = &command {
        return candidate::run(options);
    }
    let Some(assets) = apiserver::assets() else { return Ok(ExitCode::SUCCESS) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Faults(options) => script::run(assets, &options).await,
            Command::Handovers(options) => rounds::run(assets, &options, rounds::End::Stop).await,
            Command::Crashes(options) => rounds::run(assets, &options, rounds::End::Kill).await,
            Command::Steady(options) => steady::run(assets, &options).await,
            Command::Candidate(_) => Ok(()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
