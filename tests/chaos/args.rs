//! The options.

use crate::{
    elector::{Elector, Layers},
    plan::Kind,
    stall::Stall,
    timing::{duration, on_or_off},
};
use clap::{ArgAction, Args, Parser, Subcommand};
use kube_leader_gate::{LeaseTiming, lease::LeaseName};
use std::{path::PathBuf, time::Duration};

/// Candidates under faults on a real kube-apiserver, judged by its audit log.
///
/// Without a command: a short script, for `cargo test`.
#[derive(Debug, Parser)]
#[command(name = "chaos")]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plays a seeded script of faults. The audit log decides.
    Faults(Faults),
    /// Stops the holder in order, round by round, and measures from the release to the next acquisition
    Handovers(Rounds),
    /// Kills the holder, round by round, and measures from the lease's expiry to the next acquisition
    Crashes(Rounds),
    /// Freezes leaders at random instants, on many leases at once, and counts the writes that take effect late.
    Freezes(Freezes),
    /// Counts the requests of a leader and of its followers while nothing happens.
    Steady(Steady),
    /// Plays faults that no process ends with, for minutes, and measures what the candidates use meanwhile.
    Soak(Soak),
    #[command(hide = true)]
    Candidate(Candidate),
}

#[derive(Clone, Debug, Args)]
pub struct Faults {
    /// How many.
    #[arg(id = "faults", long, value_name = "N", default_value_t = 100)]
    pub count: usize,
    /// The seed that decides which fault comes when, to which candidate and for how long; random if not given
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub candidates: Candidates,
    /// Only these, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub kinds: Vec<Kind>,
    /// Leave followers alone, and play no two faults at once
    #[arg(long)]
    pub holder_only: bool,
    /// The file for everything that happened, as JSON lines; target/chaos/... if not given
    #[arg(long)]
    pub timeline: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct Rounds {
    /// How many.
    #[arg(id = "rounds", long, value_name = "N", default_value_t = 30)]
    pub count: usize,
    #[command(flatten)]
    pub candidates: Candidates,
    /// The file for everything that happened, as JSON lines; target/chaos/... if not given
    #[arg(long)]
    pub timeline: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct Freezes {
    /// How many with each of the layers.
    #[arg(id = "freezes", long, value_name = "N", default_value_t = 2_000)]
    pub count: usize,
    /// The layers to compare, separated by commas: neither, fence, request-deadline, both. They take turns on the leases
    #[arg(long, value_delimiter = ',', default_value = "neither,fence,request-deadline,both")]
    pub layers: Vec<Layers>,
    /// What else is slow during a freeze, separated by commas. Each freeze has one of these
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none")]
    pub stalls: Vec<Stall>,
    /// How many leases, with two candidates each.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub leases: u8,
    /// How many writes each leader always has under way.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub writers: usize,
    /// The seed of the instants and of the stalls; random if not given
    #[arg(long)]
    pub seed: Option<u64>,
    /// Lease duration, renew deadline and retry period in seconds.
    #[arg(long, default_value = "3/2/0.5")]
    pub timing: LeaseTiming,
    /// The file for everything that happened, as JSON lines; target/chaos/... if not given
    #[arg(long)]
    pub timeline: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct Steady {
    /// How long, in seconds
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    #[command(flatten)]
    pub candidates: Candidates,
}

#[derive(Clone, Debug, Args)]
pub struct Soak {
    /// How long.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(3..))]
    pub minutes: u64,
    /// The seed of the faults; random if not given
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub candidates: Candidates,
}

/// The candidates.
#[derive(Clone, Debug, Args)]
pub struct Candidates {
    /// How many.
    #[arg(id = "candidates",
        long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=5))]
    pub count: u8,
    /// Lease duration, renew deadline and retry period in seconds.
    #[arg(long, default_value = "6/4/1")]
    pub timing: LeaseTiming,
    /// Which election the candidates use
    #[arg(long, value_enum, default_value_t = Elector::Gate)]
    pub elector: Elector,
    #[command(flatten)]
    pub layers: Layers,
}

/// One candidate, as a process of its own.
#[derive(Debug, Args)]
pub struct Candidate {
    #[arg(long)]
    pub kubeconfig: PathBuf,
    /// NAMESPACE/NAME; the `ConfigMap` that it writes is called the same, or begins so.
    #[arg(long)]
    pub lease: LeaseName,
    #[arg(long)]
    pub identity: String,
    #[arg(long)]
    pub timing: LeaseTiming,
    #[arg(long)]
    pub writers: usize,
    #[arg(long, value_parser = duration)]
    pub write_every: Duration,
    /// Pauses only after a write that failed, and writes other objects than the other candidates.
    #[arg(long)]
    pub restless: bool,
    /// Writes while it leads alone.
    #[arg(long)]
    pub leading_only: bool,
    /// Whether each write carries a limit for the server.
    #[arg(long, value_parser = on_or_off, action = ArgAction::Set)]
    pub request_deadline: bool,
    /// The users that the fence judges, if there is one.
    #[arg(long, value_delimiter = ',')]
    pub fence: Vec<String>,
}

/// Whether the first argument is one of the commands or asks for help. Any other argument comes from `cargo test`,
/// which passes the same ones to every test target.
pub fn is_command(argument: &str) -> bool {
    let names = <Options as clap::CommandFactory>::command();
    matches!(argument, "help" | "--help" | "-h")
        || names.get_subcommands().any(|it| it.get_name() == argument)
}
