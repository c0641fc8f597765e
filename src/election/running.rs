//! A running election.

use super::{
    built::Election,
    candidate::{Candidate, Profile},
    ended::{ErrElectionEnded, LeaseEnd},
    machine::{MOST_FAILURES, Machine},
    observers::RunningObservers,
    slow_stop,
    task::Task,
};
use crate::leadership::{Closer, Leadership, Loss};
use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::{self, Future},
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};
use tracing::{Instrument, Span};

/// A stop waits for at most this many lease calls. One call may be under way when the stop begins.
const CALLS_TO_STOP: u32 = MOST_FAILURES + 1;

/// An election that contends in its own tasks. [`stop`](Self::stop) releases the lease in good order. If you drop this
/// value instead, the gate closes and the tasks end, and the lease expires by itself.
///
/// Until you stop or drop this value, [`Candidate::ended`] completes only if the election ends without an order to stop
/// (rule S10).
#[derive(Debug)]
#[must_use = "dropping it ends the election"]
pub struct Running {
    candidate: Candidate,
    pub(super) gate: Closer,
    /// The elector's task, and the task that wakes writes at the deadline.
    tasks: JoinSet<()>,
    attending: RunningObservers,
    drain_timeout: Duration,
    /// How long a stop takes at most, with the grace of the workload.
    longest_stop: Duration,
    /// Whether a stop has begun.
    stops: bool,
    /// The log messages of a stop belong to this span too.
    pub(super) span: Span,
}

/// Ends the term when this value is dropped. Without this, if a caller dropped the future of [`Running::step_down`],
/// the elector would renew the term for ever, although its gate is closed.
struct EndsTerm<'a>(&'a Closer);

/// The number of an election that runs in this process.
struct Number(u64);

static NUMBERS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

impl Number {
    fn draw() -> Self {
        let number = fastrand::u64(..);
        Self::all().insert(number);
        Self(number)
    }

    fn all() -> MutexGuard<'static, BTreeSet<u64>> {
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an election with this number runs in this process.
pub(super) fn runs_here(number: u64) -> bool {
    Number::all().contains(&number)
}

impl Drop for Number {
    fn drop(&mut self) {
        Self::all().remove(&self.0);
    }
}

// === impl Election ===

impl Election {
    /// Begins to contend, in tasks of the current tokio runtime.
    ///
    /// [`run`](Self::run) also begins to contend, and it stops in the right order when its workload ends. Use `start`
    /// if your program has no single future to run.
    ///
    /// # Panics
    /// Outside a tokio runtime, as [`tokio::spawn`] does.
    pub fn start(self) -> Running {
        let candidate = self.candidate();
        let Profile { lease, identity, pod, timing, .. } = &*self.profile;
        let span = tracing::info_span!("election", %lease, %identity);
        tracing::info!(parent: &span, timing = %timing.summary(), "contending");
        self.profile.liveness.note_run(self.grantor.now());
        self.grantor.begin();
        let (gate, deadline) = (self.grantor.closer(), self.grantor.watch_deadline());
        // By this number, candidates tell this process from other processes with the same identity.
        let number = Number::draw();
        let machine = Machine::new(identity.clone(), pod.clone(), number.0, self.priority, *timing);
        let elects = Task::new(
            machine.beside(self.runs_here),
            self.lock,
            self.places,
            self.grantor,
            self.profile,
            self.program,
        )
        .run();
        let alive = self.alive;
        let (alarm, unwatched) = oneshot::channel::<Infallible>();
        let elect = async move {
            let _number = number;
            tokio::select! {
                biased;
                () = elects => {}
                // The task that watches the deadline has panicked, so no task would wake a hanging write at the
                // deadline.
                _ = unwatched => {}
            }
            drop(alive);
        };
        let deadline = async move {
            let _alarm = alarm;
            deadline.await;
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(elect.instrument(span.clone()));
        tasks.spawn(deadline.instrument(span.clone()));
        let attending = self.observers.start(&candidate, &span);
        // After the release, the tasks have one more call timeout to end.
        let calls = candidate.timing().call_timeout() * (CALLS_TO_STOP + 1);
        let longest_stop = [self.drain_timeout, candidate.timing().safety_margin(), calls]
            .into_iter()
            .fold(self.grace, Duration::saturating_add);
        let drain_timeout = self.drain_timeout;
        Running { candidate, gate, tasks, attending, drain_timeout, longest_stop, stops: false, span }
    }
}

// === impl Running ===

impl Running {
    /// The handle to ask who leads.
    #[must_use]
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// Waits until the election ends without an order to stop. Cancel-safe.
    pub(super) async fn died(&self) -> ErrElectionEnded {
        // The election records another end only when a stop is over, so this is an end without an order.
        let _ = self.candidate.ended().await;
        ErrElectionEnded(())
    }

    /// Stops in the order of [rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order). It closes the gate,
    /// lets admitted writes finish while it still renews the lease, and then releases the lease. Stop the workload
    /// first.
    ///
    /// If writes do not finish within the drain timeout, the election cuts them off. If a write ended without an
    /// answer, the election releases the lease only when the [safety margin](crate::LeaseTiming::safety_margin) has
    /// passed since the end of this write. If the lease would expire before that, the election leaves it to expire.
    ///
    /// So a stop takes at most the drain timeout, the safety margin, and five call timeouts.
    ///
    /// Not cancel-safe: if the future is dropped, the gate closes and the lease is left to expire.
    pub async fn stop(self) -> LeaseEnd {
        self.stop_with(future::pending::<()>()).await
    }

    /// Stops as [`stop`](Self::stop) does. `work` continues while the admitted writes finish, and is dropped after
    /// that.
    pub(super) async fn stop_with(mut self, work: impl Future) -> LeaseEnd {
        self.warn_if_the_stop_is_slow();
        // After this call, a grant that the elector's task makes at the same time cannot open the gate.
        self.gate.seal();
        let stopped = self.stand_down(work).await;
        self.candidate.profile.liveness.end(Ok(stopped));
        let end = Instant::now() + self.candidate.timing().call_timeout();
        let _ = timeout_at(end, self.tasks.shutdown()).await;
        self.attending.finish(end.saturating_duration_since(Instant::now())).await;
        stopped
    }

    /// Begins to watch over a stop: if it takes long, the log says what it waits for. Only the first call does anything.
    pub(super) fn warn_if_the_stop_is_slow(&mut self) {
        if !std::mem::replace(&mut self.stops, true) {
            let watches = slow_stop::watch(self.candidate.clone(), self.longest_stop);
            self.tasks.spawn(watches.instrument(self.span.clone()));
        }
    }

    /// Hands leadership to another candidate without ending the election. It releases the lease as [`stop`](Self::stop)
    /// does, then waits for `pause`, and contends again. A follower has nothing to release, but does not contend during
    /// the pause either. Returns early if the election ends without an order to stop.
    ///
    /// Not cancel-safe: if the future is dropped, the gate stays closed, admitted writes are cut off, and the lease is
    /// left to expire. The election does not acquire the lease again until a later call of `step_down` completes.
    pub async fn step_down(&mut self, pause: Duration) -> LeaseEnd {
        let stopped = self.stand_down(future::pending::<()>()).await;
        self.stay_away(pause).await;
        stopped
    }

    /// Contends again after `pause`. Returns early if the election ends. Cancel-safe.
    pub(super) async fn stay_away(&self, pause: Duration) {
        let over = self.leadership().now().saturating_add(pause);
        tokio::select! {
            _ = self.died() => {}
            () = self.leadership().sleep_until(over) => self.gate.contend(),
        }
    }

    /// Releases the lease if held, and acquires nothing more. `work` continues while the admitted writes finish, and
    /// is dropped after that.
    pub(super) async fn stand_down(&self, work: impl Future) -> LeaseEnd {
        let stands_down = async {
            let _ended = EndsTerm(&self.gate);
            // After this, an acquisition that is under way cannot open the gate.
            self.gate.close();
            self.drain(work).await;
            self.gate.leave();
            let timing = self.candidate.timing();
            let patience = timing.safety_margin() + timing.call_timeout() * CALLS_TO_STOP;
            let released = tokio::select! {
                left = timeout(patience, self.gate.left()) => left.unwrap_or(false),
                _ = self.died() => false,
            };
            if released { LeaseEnd::Released } else { LeaseEnd::LeftToExpire }
        };
        stands_down.instrument(self.span.clone()).await
    }

    pub(super) fn leadership(&self) -> &Leadership {
        self.candidate.leadership()
    }

    /// Waits for the admitted writes while `work` continues. Then cuts off the writes that did not finish in time,
    /// and drops `work`.
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
        // When the term ended, it recorded the writes that it cut off as writes without an answer.
        let settles_at = self.leadership().settles_at(self.candidate.timing().safety_margin());
        let at_most = settles_at.saturating_since(self.leadership().now());
        if !at_most.is_zero() {
            tracing::info!(
                ?at_most,
                "a write ended without an answer; the lease is kept until that write can no longer take effect"
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

// === impl EndsTerm ===

impl Drop for EndsTerm<'_> {
    fn drop(&mut self) {
        self.0.revoke(Loss::Abandoned);
    }
}
