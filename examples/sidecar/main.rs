//! The gate for programs that are not written in Rust: an HTTP proxy beside the application, like `kubectl proxy`, that
//! lets reads through and writes only while this process leads. See `--help`.
//!
//! `args` is what is asked for, `kubeconfig` where the API server is. A request comes in at `serve`, `connection` and
//! `socket`, which share what they know of it in `exchange`; `hosts` and `headers` judge and clean it, `proxy` sends it through the gate to `upstream`, `upload` is its body,
//! `tunnel` what follows an upgrade, `reply` what is said when something fails. `status` answers probes, `signals` and
//! `run` stop it in order.
#![expect(unreachable_pub, reason = "the modules of an example are nobody's library")]

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

/// Whatever went wrong, for the user.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    // A usage error ends it here, with 2.
    let args = Args::parse();
    // The election tells its own troubles, once per change; kube's client tells them with each attempt.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,kube_client=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
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
    // A name that is still being looked up, or a credential plugin, holds nothing up.
    runtime.shutdown_background();
    outcome
}

async fn until_told(args: Args) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let (stop, stopped) = oneshot::channel();
    let second = async {
        let first = signals.next().await;
        tracing::info!("{first}: stopping; a second signal ends it at once, without releasing the lease");
        // Nobody listens if it is ending already.
        let _ = stop.send(());
        signals.next().await
    };
    tokio::select! {
        outcome = run::run(args, stopped) => outcome,
        second = second => {
            tracing::warn!("{second}: ending at once; the lease is left to run out");
            std::process::exit(second.exit_code())
        }
    }
}

/// An error with all that it was caused by, as one line. Many libraries repeat their cause: that is said once.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}
