//! An election under way.

use super::{
    attendants::Attending,
    built::Election,
    candidate::{Candidate, Profile},
    elector::{Elector, Orders},
    ended::{ErrElectionEnded, LeaseEnd},
    pulse::Pulse,
};
use crate::{
    leadership::{Closer, Leadership, Loss},
    lease::{Lock, VettedLock},
};
use std::{
    future::{self, Future},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::timeout,
};
use tracing::{Instrument, Span};

/// Lease calls that a stop may take at the longest: one that is under way, then reads and writes to give the lease up.
const CALLS_TO_STOP: u32 = 4;

/// An election that contends in tasks of its own. Dropping it closes the gate and ends them; the lease then runs out by
/// itself. [`stop`](Self::stop) gives it up in good order.
///
/// Before that, [`Candidate::ended`] completes only if the election ends without being told to (rule S10).
#[derive(Debug)]
#[must_use = "dropping it ends the election"]
pub struct Running {
    candidate: Candidate,
    gate: Closer,
    orders: watch::Sender<Orders>,
    pulse: Arc<Pulse>,
    /// The elector's, and the one that wakes writes at the deadline.
    tasks: JoinSet<()>,
    attending: Attending,
    drain_timeout: Duration,
    /// What a stop says stands in it too.
    span: Span,
}

// === impl Election ===

impl<L: Lock> Election<L> {
    /// Begins to contend, in tasks of the current tokio runtime.
    ///
    /// [`run`](Self::run) does this and stops in the right order around a workload; use this where there is no single
    /// future to run.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as [`tokio::spawn`] does.
    pub fn start(self) -> Running {
        let candidate = self.candidate();
        let (orders, received) = watch::channel(Orders::Contend);
        let Profile { lease, identity, timing, pulse, .. } = &*self.profile;
        let span = tracing::info_span!("election", %lease, %identity);
        tracing::info!(parent: &span, timing = %timing.summary(), "contending");
        let pulse = pulse.clone();
        let (gate, deadline) = (self.grantor.closer(), self.grantor.watch_deadline());
        let lock = VettedLock::new(self.lock, lease.clone());
        let elector = Elector::new(lock, self.grantor, self.profile, self.priority, received);
        let alive = self.alive;
        let elect = async move {
            elector.run().await;
            drop(alive);
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(elect.instrument(span.clone()));
        tasks.spawn(deadline.instrument(span.clone()));
        let attending = self.attendants.start(&candidate, &span);
        Running { candidate, gate, orders, pulse, tasks, attending, drain_timeout: self.drain_timeout, span }
    }
}

// === impl Running ===

impl Running {
    /// The handle to ask who leads.
    #[must_use]
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// Waits until the election has ended without being told to. Cancel-safe.
    pub(super) async fn died(&self) -> ErrElectionEnded {
        // The elector has the only receiver.
        self.orders.closed().await;
        ErrElectionEnded(())
    }

    /// Stops in the order of rule S4: closes the gate, lets the admitted writes finish while the lease is still renewed,
    /// then gives it up. Stop the workload before.
    ///
    /// Writes that do not finish within the drain timeout are cut off. A write that ended without an answer may still be
    /// carried out, so the lease is given up only when the [tolerated skew](crate::LeaseTiming::tolerated_skew) has passed
    /// since then; if the lease would run out before that, it is left to. So a stop takes at most the drain timeout, the
    /// tolerated skew, and five call timeouts; if all writes were answered, it takes as long as they and one lease call.
    ///
    /// Not cancel-safe: a stop that is dropped closes the gate and leaves the lease to run out.
    pub async fn stop(self) -> LeaseEnd {
        self.stop_with(future::pending::<()>()).await
    }

    /// As [`stop`](Self::stop), and lets `work` go on while the admitted writes finish; it is dropped after that.
    pub(super) async fn stop_with(mut self, work: impl Future) -> LeaseEnd {
        self.hold();
        // Also a grant that is being made at this moment opens nothing any more.
        self.gate.seal();
        let stopped = self.stand_down(work).await;
        self.pulse.end(Ok(stopped));
        let patience = self.candidate.timing().call_timeout();
        let _ = timeout(patience, self.tasks.shutdown()).await;
        self.attending.finish(patience).await;
        stopped
    }

    /// Hands leadership to another candidate without ending the election: gives the lease up as [`stop`](Self::stop) does,
    /// and contends again after `pause`, counted from there. A follower does not contend for that long. Takes as long as a
    /// stop, and the pause.
    ///
    /// What arrives late meanwhile, an acquisition that was not answered say, is given back. Ends early when the election
    /// does without being told to.
    ///
    /// Not cancel-safe: when it is dropped the gate stays closed, and nothing is acquired, until it is called again.
    pub async fn step_down(&mut self, pause: Duration) -> LeaseEnd {
        let stopped = self.stand_down(future::pending::<()>()).await;
        self.stay_away(pause).await;
        stopped
    }

    /// Contends again after `pause`, or ends when the election does. Cancel-safe.
    pub(super) async fn stay_away(&self, pause: Duration) {
        let over = self.leadership().now().saturating_add(pause);
        tokio::select! {
            _ = self.died() => {}
            () = self.leadership().sleep_until(over) => self.contend(),
        }
    }

    /// Gives up what is held and acquires nothing more; `work` goes on while the admitted writes finish, and is dropped after
    /// that.
    pub(super) async fn stand_down(&self, work: impl Future) -> LeaseEnd {
        let stands_down = async {
            self.hold();
            self.suspend();
            self.drain(work).await;
            let (done, mut outcome) = mpsc::channel(1);
            self.orders.send_replace(Orders::StandDown(done));
            let timing = self.candidate.timing();
            let patience = timing.tolerated_skew() + timing.call_timeout() * CALLS_TO_STOP;
            let stopped = tokio::select! {
                outcome = timeout(patience, outcome.recv()) => outcome.ok().flatten(),
                _ = self.died() => None,
            };
            // A term whose time to end has run out would be renewed for ever behind the closed gate.
            self.gate.revoke(Loss::Abandoned);
            stopped.unwrap_or(LeaseEnd::LeftToExpire)
        };
        stands_down.instrument(self.span.clone()).await
    }

    /// Renews what is held, and acquires nothing more.
    pub(super) fn hold(&self) {
        self.orders.send_replace(Orders::Hold);
    }

    /// Closes the gate, and keeps it closed, whatever is being acquired at this moment, until [`contend`](Self::contend).
    pub(super) fn suspend(&self) {
        self.gate.suspend();
    }

    /// Contends again.
    pub(super) fn contend(&self) {
        self.gate.resume();
        self.orders.send_replace(Orders::Contend);
    }

    pub(super) fn leadership(&self) -> &Leadership {
        &self.candidate.leadership
    }

    /// Waits for the admitted writes, while `work` goes on, and cuts off those that do not finish in time. `work` is dropped
    /// then.
    async fn drain(&self, work: impl Future) {
        let mut drained = pin!(self.leadership().drain(self.drain_timeout));
        let mut work = pin!(work);
        let outcome = tokio::select! {
            biased;
            outcome = &mut drained => outcome,
            _ = &mut work => drained.await,
        };
        if let Err(late) = outcome {
            self.gate.revoke(Loss::Abandoned);
            let writes = late.writes;
            tracing::warn!(writes, "admitted writes are cut off: {late}");
        }
        let writing = self.leadership().writes_under_way() > 0;
        let settles_at = self.leadership().settles_at(writing, self.candidate.timing().tolerated_skew());
        let at_most = settles_at.saturating_since(self.leadership().now());
        if !at_most.is_zero() {
            tracing::info!(
                ?at_most,
                "a write has ended without an answer; the lease is not given up before it can land no more"
            );
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.span.in_scope(|| {
            self.gate.seal();
            self.gate.revoke(Loss::Abandoned);
        });
    }
}
