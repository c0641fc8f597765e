//! The gate for programs that are not written in Rust: an HTTP proxy beside the application, like `kubectl proxy`, that
//! lets reads through and writes only while this process leads. See `--help`.
//!
//! `args` has the options; `kubeconfig` finds the API server. A request comes in at `serve`, `connection` and
//! `socket`, which share its state in `exchange`. `hosts` and `headers` check and clean it, `proxy` sends it through
//! the gate to `upstream`, `upload` is its body, `tunnel` is what follows an upgrade, and `reply` is the answer to a
//! failure. `status` answers probes. `signals` and `run` stop the sidecar in order.
#![expect(unreachable_pub, reason = "no other crate uses the modules of an example")]

mod args;
mod connection;
mod descriptors;
mod exchange;
mod headers;
mod hosts;
mod kubeconfig;
mod proxy;
mod reply;
mod run;
mod serve;
mod signals;
mod socket;
mod status;
mod tunnel;
mod upload;
mod upstream;

use crate::{args::Args, signals::Signals};
use clap::Parser;
use std::{error::Error, process::ExitCode};
use tokio::{runtime::Builder, sync::oneshot};
use tracing_subscriber::EnvFilter;

/// Any error, for the user.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    // A usage error ends the process here, with status 2.
    let args = Args::parse();
    // The election reports each of its troubles once. kube's client would report them with each attempt.
    let set = std::env::var("RUST_LOG").ok().filter(|it| !it.is_empty());
    let filter = set.and_then(|it| it.parse().ok()).unwrap_or_else(|| EnvFilter::new("info,kube_client=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    match start(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

fn start(args: Args) -> Result<(), Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(until_told(args));
    // An open name look-up or credential plugin must not delay the exit.
    runtime.shutdown_background();
    outcome
}

async fn until_told(args: Args) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let (stop, stopped) = oneshot::channel();
    let second = async {
        let first = signals.next().await;
        tracing::info!(
            "{first}: stopping; a second signal ends this process at once, without releasing the lease"
        );
        // Sending fails only when the sidecar is ending already.
        let _ = stop.send(());
        signals.next().await
    };
    tokio::select! {
        outcome = run::run(args, stopped) => outcome,
        second = second => {
            tracing::warn!("{second}: ending at once; the lease is not released and will expire");
            std::process::exit(second.exit_code())
        }
    }
}

/// An error and its causes as one line. Many libraries repeat their cause: a repetition is left out. And further lines:
/// of a broken kubeconfig, they would show the token.
fn chain(error: &(dyn Error + 'static)) -> String {
    let line = |error: &dyn Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    let mut text = line(error);
    let mut next = error.source();
    while let Some(cause) = next {
        let said = line(cause);
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}
