//! Candidates under faults on a real kube-apiserver, judged by its audit log: `make -C tests chaos`, or
//! `cargo test --test chaos -- --help`. As a part of `cargo test` it plays a short script.
//!
//! `args` has the options, and `timing` reads them. `candidate` is the process that contends, `writers` are its writes, `elector` is its
//! implementation, `roster` starts the processes, and `proxy` stands between them and the server. `site` is the
//! server and its audit log, `seen` is what the log says about one lease, and `stage` is that lease with its candidates.
//! `plan` writes the script from a seed, and `faults` plays it. `report` judges, `table` prints, and `journal` records
//! everything. `freezes` plays freezes on many leases at once, `stall` is what else is slow meanwhile, `lateness` finds
//! the late writes, and `freezes_table` prints. `rounds` and `steady` measure without faults. `soak` plays faults for long,
//! and `usage` is what the candidates use meanwhile.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod args;
mod candidate;
mod elector;
mod faults;
mod freezes;
mod freezes_table;
mod journal;
mod lateness;
mod plan;
mod proxy;
mod report;
mod roster;
mod rounds;
mod script;
mod seen;
mod site;
mod soak;
mod stage;
mod stall;
mod steady;
mod table;
mod timing;
mod usage;
mod writers;

use crate::args::{Command, Options};
use clap::Parser;
use std::{error::Error, process::ExitCode};
use test_support::{
    apiserver,
    harness::{self, Test},
};

/// Any error, for a person to read.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(first) if args::is_command(&first) => run(Options::parse().command),
        // Arguments that cargo passes to all tests.
        _ => {
            let short = || run(Command::Faults(script::short())).map_err(|error| error.to_string());
            return harness::run(vec![
                Test::new("chaos", &[apiserver::is_there], short),
                Test::new("lateness::write_is_late_by_its_end", &[], || {
                    lateness::write_is_late_by_its_end();
                    Ok(())
                }),
                Test::new("usage::more_of_anything_is_found", &[], || {
                    usage::more_of_anything_is_found();
                    Ok(())
                }),
            ]);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    if let Command::Candidate(options) = &command {
        return candidate::run(options);
    }
    let assets = apiserver::assets();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Faults(options) => script::run(assets, &options).await,
            Command::Handovers(options) => rounds::run(assets, &options, rounds::End::Stop).await,
            Command::Crashes(options) => rounds::run(assets, &options, rounds::End::Kill).await,
            Command::Freezes(options) => freezes::run(assets, options).await,
            Command::Steady(options) => steady::run(assets, &options).await,
            Command::Soak(options) => soak::run(assets, &options).await,
            Command::Candidate(_) => Ok(()),
        }
    })
}
