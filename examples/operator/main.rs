//! A small operator, run by three replicas of which one writes: `cargo run --features runtime --example operator`, and see
//! `--help`.
//!
//! `operator` is the operator, the file to copy. Everything else shows it: `show` without a cluster, `user` is whom it
//! works for, `report` what the server saw; `signals` ends it.
#![expect(unreachable_pub, reason = "the modules of an example are nobody's library")]

mod operator;
mod report;
mod show;
#[path = "../demo/signals.rs"]
mod signals;
mod user;

use crate::{
    operator::{Mode, NAME},
    user::Failure,
};
use clap::Parser;
use kube::Config;
use kube_leader_gate::{CancellationToken, Election, LeaseTiming};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// A small operator that greets: each greeting gets its text, in an object that it owns, and a status.
///
/// Without options: three replicas over an in-process API server are replaced one after the other while objects are made,
/// changed and deleted; then the server says who wrote what.
#[derive(Parser)]
#[command(name = "operator")]
struct Args {
    /// Be one replica, in the cluster and namespace of the current kubeconfig, or of the pod, until SIGTERM or Ctrl-C
    #[arg(long)]
    cluster: bool,

    /// How replicas share the work
    #[arg(long, value_enum, default_value = "gated")]
    mode: Mode,

    /// Times of 15/10/2 s in place of 137/107/26 s for the election in a cluster
    #[arg(long, requires = "cluster")]
    fast: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let default = if args.cluster { "info,kube_client=off" } else { "off" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let outcome = if args.cluster { replica(&args).await } else { show::play(args.mode).await };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One replica, until it is told to stop.
async fn replica(args: &Args) -> Result<(), Failure> {
    let told = signals::first()?;
    let config = Config::infer().await?;
    let timing = if args.fast { LeaseTiming::fast() } else { LeaseTiming::default() };
    let election = Election::builder(&config.default_namespace, NAME).timing(timing).build(&config)?;
    let client = election.client(&config)?;
    let shutdown = CancellationToken::new();
    let replica = operator::run(election, client, args.mode, shutdown.clone());
    let never = async {
        told.await;
        tracing::info!("stopping");
        shutdown.cancel();
        std::future::pending().await
    };
    tokio::select! {
        outcome = replica => Ok(outcome?),
        never = never => never,
    }
}
