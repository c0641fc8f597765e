//! What the Rust candidates share, whichever kube they are on: the arguments, and the writes of a leader.

use std::{env, error::Error, pin::pin, time::Duration};
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::sleep,
};

pub type Failure = Box<dyn Error + Send + Sync>;

/// The timing of every peer, where it has such a setting. In seconds.
pub const LEASE_DURATION: u64 = 15;
pub const RENEW_DEADLINE: u64 = 10;
pub const RETRY_PERIOD: u64 = 2;

/// The arguments of every candidate: `PROGRAM NAMESPACE NAME IDENTITY EVERY_MS`. `KUBECONFIG` in the environment says
/// where the API server is.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Of the Lease, and of the `ConfigMap` that the leader writes.
    pub namespace: String,
    pub name: String,
    pub identity: String,
    /// Between the writes of a leader. Zero: one write for each term.
    pub every: Duration,
}

impl Arguments {
    pub fn parse() -> Result<Self, Failure> {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let [namespace, name, identity, every] = arguments
            .try_into()
            .map_err(|_| "usage: KUBECONFIG=FILE candidate NAMESPACE NAME IDENTITY EVERY_MS")?;
        let every =
            every.parse().map_err(|_| format!("EVERY_MS is {every:?}, allowed: 0 or more milliseconds"))?;
        Ok(Self { namespace, name, identity, every: Duration::from_millis(every) })
    }

    /// Writes at once, and then as often as the arguments say, until `stop` completes. Then it finishes the write that
    /// is under way. `write` gets a merge patch of the `ConfigMap`.
    pub async fn work<E: std::fmt::Display>(
        &self,
        stop: impl Future<Output = ()>,
        mut write: impl AsyncFnMut(String) -> Result<(), E>,
    ) {
        let mut stop = pin!(stop);
        for count in 0_u64.. {
            let patch = format!(r#"{{"data":{{"leader":"{}","count":"{count}"}}}}"#, self.identity);
            match write(patch).await {
                Ok(()) if self.every.is_zero() => return stop.await,
                Ok(()) => {}
                Err(error) => eprintln!("write {count} failed: {error}"),
            }
            select! {
                () = &mut stop => return,
                () = sleep(self.every.max(Duration::from_millis(10))) => {}
            }
        }
    }
}

/// Whether the process has received SIGTERM.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// From now on the signal does not end the process.
    pub fn on_sigterm() -> Result<Self, Failure> {
        let mut terminate = signal(SignalKind::terminate())?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            terminate.recv().await;
            sender.send_replace(true);
        });
        Ok(Self(receiver))
    }

    /// Waits for the signal.
    pub async fn received(&self) {
        // An error means that its task has ended, which it does after the signal.
        let _ = self.0.clone().wait_for(|it| *it).await;
    }
}
