//! The gate for programs in any language: an HTTP proxy beside the application, like `kubectl proxy`, that lets reads
//! through, and writes only while this process leads. See `--help`.

use kube_leader_gate_sidecar::{Args, Failure, Order, Sidecar, chain};
use std::{
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};
use tracing_subscriber::EnvFilter;

/// A second signal that comes earlier than this is the first one again: `timeout`, a shell or a supervisor may signal this
/// process and then its group.
const MEANT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // A usage error ends the process here, with status 2.
    let done = match Order::read() {
        Order::Serve(args) => start(&args),
        Order::Probe(probe) => probe.ask().and_then(|page| Ok(io::stdout().write_all(page.as_bytes())?)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

fn start(args: &Args) -> Result<(), Failure> {
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::try_new(&args.log)?);
    // By itself it panics when no process reads the log any more.
    log.with_ansi(false).with_writer(io::stderr).log_internal_errors(false).init();
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        // From here on these signals do not kill the process.
        let signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (stop, stopped) = oneshot::channel();
        // A task of its own: at the start, a credential plugin blocks this thread.
        tokio::spawn(end_when_told(signals, stop));
        let sidecar = Sidecar::bind(args, args.policy()).await?;
        // No process has to read it.
        if let Some(addr) = sidecar.status_addr() {
            let _ = writeln!(io::stdout(), "status on http://{addr}");
        }
        if let Some(addr) = sidecar.metrics_addr() {
            let _ = writeln!(io::stdout(), "metrics on http://{addr}/metrics");
        }
        let _ = writeln!(io::stdout(), "serving on http://{}", sidecar.addr());
        sidecar.run(stopped).await
    });
    // An open name look-up or credential plugin must not delay the exit.
    runtime.shutdown_background();
    outcome
}

/// Stops the sidecar at the first signal, and ends the process at a second one that a person means.
async fn end_when_told(mut signals: (Signal, Signal), stop: oneshot::Sender<()>) {
    let (first, _) = next(&mut signals).await;
    let told = Instant::now();
    tracing::info!(
        "{first}: stopping; a second signal, a second later or more, ends this process at once, without releasing the \
         lease"
    );
    // Sending fails only when the sidecar is ending already.
    let _ = stop.send(());
    loop {
        let (second, exit_code) = next(&mut signals).await;
        if told.elapsed() >= MEANT {
            tracing::warn!("{second}: ending at once; the lease is not released and will expire");
            std::process::exit(exit_code)
        }
    }
}

/// A signal's name, and the exit status that a shell reports for a death by it.
async fn next((terminate, interrupt): &mut (Signal, Signal)) -> (&'static str, i32) {
    tokio::select! {
        _ = terminate.recv() => ("SIGTERM", 128 + 15),
        _ = interrupt.recv() => ("interrupted", 128 + 2),
    }
}
