//! A small operator with three replicas, of which one writes: `cargo run --package examples --example
//! operator`. See `--help` for its options.
//!
//! `operator` is the operator: the file to copy. The others show it at work: `show` runs it without a cluster, `user`
//! is its user, and `report` says what the server saw.
#![expect(unreachable_pub, reason = "no other crate uses the modules of an example")]

mod operator;
mod report;
mod show;
mod user;

use crate::{
    operator::{Mode, NAME},
    user::Failure,
};
use clap::Parser;
use kube::{Client, Config};
use kube_leader_gate::{CancellationToken, Election, LeaseTiming, Policy, lease::LeaseName, shutdown_signal};
use kube_leader_gate_fence::{Fence, Writers};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// A small operator that greets. It gives each greeting a text, in an object that it owns, and a status.
///
/// Without options, three replicas run over an in-process API server and are replaced one after the other, while a
/// user makes, changes and deletes objects. Then the server reports who wrote what.
///
/// In a cluster its lease is `greeting-operator`, and examples/operator/rbac.yaml has the permissions that it needs.
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

    /// Rely on the API server's fence, which judges these writers: service-account:NS/NAME, users:NAME,NAME or
    /// group:NAME. The example `fence` makes the fence, for the lease NS/greeting-operator
    #[arg(long, requires = "cluster", value_name = "WHO")]
    fence: Option<Writers>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let default = if args.cluster { "info,kube_client=off,rustls_platform_verifier=off" } else { "off" };
    let set = std::env::var("RUST_LOG").ok().filter(|it| !it.is_empty());
    let filter = set.and_then(|it| it.parse().ok()).unwrap_or_else(|| EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    let outcome = if args.cluster { Box::pin(replica(&args)).await } else { show::play(args.mode).await };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one replica until it receives a signal.
async fn replica(args: &Args) -> Result<(), Failure> {
    let told = shutdown_signal()?;
    let config = Config::infer().await?;
    let timing = if args.fast { LeaseTiming::fast() } else { LeaseTiming::default() };
    let mut election = Election::builder(&config.default_namespace, NAME).timing(timing);
    let mut fence = None;
    if let Some(writers) = &args.fence {
        let lease = LeaseName::new(&config.default_namespace, NAME)?;
        let fence = fence.insert(Fence::new(&lease, writers, &Policy::strict())?);
        election = election.layer_lock(fence.layer(Client::try_from(config.clone())?));
    }
    let election = election.build(&config)?;
    let mut client = election.client(&config)?;
    if let Some(fence) = fence {
        client = fence.refusals().wrap(client);
    }
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
