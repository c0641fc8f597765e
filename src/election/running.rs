//! An election under way.

use super::{
    Election, Leader,
    attendants::Attending,
    candidacy::Candidacy,
    elector::{Elector, Orders},
};
use crate::{
    leadership::{Leadership, Loss},
    lease::Lock,
};
use std::{error::Error, fmt, time::Duration};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tracing::Instrument;

/// Lease calls that a stop may take at the longest: one that is under way, then reads and writes to give the lease up.
const CALLS_TO_STOP: u32 = 4;

/// An election that contends in tasks of its own. Dropping it closes the gate and ends them; the lease then runs out by
/// itself. [`stop`](Self::stop) gives it up in good order.
#[derive(Debug)]
pub struct Running {
    leader: Leader,
    leadership: Leadership,
    orders: watch::Sender<Orders>,
    elector: Owned<bool>,
    _deadline: Owned<()>,
    attending: Attending,
    drain_timeout: Duration,
    call_timeout: Duration,
}

/// How an election stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// The lease is free, or belongs to somebody else.
    Released,
    /// Writes had not finished in time, the API server could not be told, or somebody from whom this candidate had just
    /// taken the lease by its [priority](super::Priority) may still be writing: the lease runs out by itself.
    LeftToExpire,
}

/// The election's task has ended without being told to: a bug, or a runtime that shuts down. The gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionEnded(());

/// A task that ends with its owner.
#[derive(Debug)]
struct Owned<T>(JoinHandle<T>);

// === impl Election ===

impl<L: Lock> Election<L> {
    /// Begins to contend, in tasks of the current tokio runtime.
    ///
    /// [`run`](Self::run) does this and stops in the right order around a workload; use this where there is no single
    /// future to run.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as [`tokio::spawn`] does.
    #[must_use = "dropping it ends the election"]
    pub fn start(self) -> Running {
        let leader = self.leader();
        let (orders, received) = watch::channel(Orders::Contend);
        let timing = self.candidate.timing;
        let span = tracing::info_span!(
            "election",
            lease = %self.candidate.lease,
            identity = %self.candidate.identity,
        );
        tracing::info!(parent: &span, %timing, "contending");
        let alive = self.alive;
        let elector = Elector::new(
            self.lock,
            self.leadership.clone(),
            Candidacy::new(self.candidate.identity.clone(), timing, self.priority),
            timing,
            self.candidate.pulse.clone(),
            received,
        );
        let elect = async move {
            let _alive = alive;
            elector.run().await
        };
        let leadership = self.leadership.clone();
        let watch = async move {
            leadership.watch_deadline().await;
        };
        Running {
            attending: self.attendants.start(&leader, &span),
            leader,
            leadership: self.leadership,
            orders,
            elector: Owned(tokio::spawn(elect.instrument(span.clone()))),
            _deadline: Owned(tokio::spawn(watch.instrument(span))),
            drain_timeout: self.drain_timeout,
            call_timeout: timing.call_timeout(),
        }
    }
}

// === impl Running ===

impl Running {
    /// The handle to ask who leads.
    #[must_use]
    pub fn leader(&self) -> &Leader {
        &self.leader
    }

    /// Waits for an end that nobody asked for. Cancel-safe.
    pub async fn ended(&self) -> ElectionEnded {
        // The elector has the only receiver.
        self.orders.closed().await;
        ElectionEnded(())
    }

    /// Stops in the order of rule S4: close the gate, let the admitted writes finish while the lease is still renewed,
    /// then give it up. Stop the workload before. Takes at most the drain timeout plus five call timeouts.
    ///
    /// If the writes do not finish in time they are cut off, and the lease is left to run out.
    ///
    /// Not cancel-safe: a stop that is dropped closes the gate and leaves the lease to run out.
    pub async fn stop(mut self) -> Stopped {
        let stopped = self.give_up().await;
        self.attending.finish(self.call_timeout).await;
        stopped
    }

    async fn give_up(&mut self) -> Stopped {
        self.orders.send_replace(Orders::Hold);
        // Also a grant that is being made at this moment opens nothing any more.
        self.leadership.seal();
        if let Err(late) = self.leadership.drain(self.drain_timeout).await {
            self.leadership.revoke(Loss::Abandoned);
            tracing::warn!(
                writes = late.writes,
                "{late}; they are cut off, and the lease is left to run out"
            );
            return Stopped::LeftToExpire;
        }
        self.orders.send_replace(Orders::Release);
        match timeout(self.call_timeout * CALLS_TO_STOP, &mut self.elector.0).await {
            Ok(Ok(true)) => Stopped::Released,
            Ok(Ok(false) | Err(_)) | Err(_) => Stopped::LeftToExpire,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.leadership.seal();
        self.leadership.revoke(Loss::Abandoned);
    }
}

// === impl Owned ===

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl ElectionEnded ===

impl fmt::Display for ElectionEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the leader election has ended unasked; writes are rejected until the process is restarted",
        )
    }
}

impl Error for ElectionEnded {}
