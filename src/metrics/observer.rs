//! The task that keeps the gauges up to date, and the metrics of lease calls and of the time without a holder.

use super::{
    names::{
        CONTENDING, LEADERLESS_GAP_SECONDS, LEADERLESS_SECONDS, LEASE_CALL_DURATION_SECONDS,
        LEASE_CALL_FAILURES_TOTAL, LOSSES_TOTAL, Labels, MASTER_STATUS, OPENING, SLOWPATH_TOTAL,
        TIME_TO_DEADLINE_SECONDS, TRANSITIONS_TOTAL, WRITES_UNDER_WAY, describe, outlive,
    },
    writes::Writes,
};
use crate::{
    election::{Candidate, LeaseCall, LeaseHook},
    leadership::{LeadershipState, Loss, Moment, Term},
    lease::ErrLockKind,
};
use futures_util::StreamExt;
use metrics::{Counter, Label};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The longest age of a gauge.
const PERIOD: Duration = Duration::from_secs(1);

struct MetricsObserver {
    labels: Labels,
    calls: Arc<Calls>,
    candidate: Candidate,
    holder: Option<Arc<str>>,
    term: Option<Term>,
}

pub(super) async fn attend(
    labels: Labels,
    calls: Arc<Calls>,
    candidate: Candidate,
    stopped: CancellationToken,
) {
    let mut changes = candidate.changes();
    let mut observer = MetricsObserver { labels, calls, candidate, holder: None, term: None };
    observer.begin();
    let mut period = interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stopped.cancelled() => break,
            Some(state) = changes.next() => observer.follow(state),
            _ = period.tick() => {}
        }
        observer.publish();
    }
}

impl MetricsObserver {
    /// Starts all metrics at zero.
    fn begin(&self) {
        describe();
        Writes::begin(&self.labels);
        self.calls.begin();
        self.labels.counter(TRANSITIONS_TOTAL, []).increment(0);
        for loss in [Loss::Released, Loss::Expired, Loss::Taken, Loss::Deleted, Loss::Abandoned] {
            self.losses(loss).increment(0);
        }
    }

    fn follow(&mut self, state: LeadershipState) {
        if state.holder.is_some() && state.holder != self.holder {
            if self.holder.is_some() {
                self.labels.counter(TRANSITIONS_TOTAL, []).increment(1);
            }
            self.holder = state.holder;
        }
        if self.term.is_some()
            && self.term != state.term
            && let Some(loss) = state.lost
        {
            self.losses(loss).increment(1);
        }
        self.term = state.term;
    }

    fn publish(&self) {
        let Self { labels, candidate, .. } = self;
        labels.gauge(MASTER_STATUS).set(u8::from(candidate.is_leader()));
        labels.gauge(CONTENDING).set(u8::from(candidate.contends()));
        labels.gauge(OPENING).set(u8::from(candidate.opening().is_some()));
        labels.gauge(TIME_TO_DEADLINE_SECONDS).set(candidate.leadership().time_left().unwrap_or_default());
        labels.gauge(LEADERLESS_SECONDS).set(self.calls.leaderless(candidate.leadership().now()));
        let writes = u32::try_from(candidate.leadership().writes_under_way()).unwrap_or(u32::MAX);
        labels.gauge(WRITES_UNDER_WAY).set(writes);
    }

    fn losses(&self, loss: Loss) -> Counter {
        self.labels.counter(LOSSES_TOTAL, [Label::from_static_parts("loss", loss.as_str())])
    }
}

/// Runs when it ends: by an order, because its election was dropped, or because the recorder has panicked.
impl Drop for MetricsObserver {
    fn drop(&mut self) {
        outlive(|| {
            self.follow(self.candidate.leadership().state());
            self.calls.end();
            self.publish();
            // Dropping an election closes its gate, perhaps a moment later.
            for gauge in [MASTER_STATUS, TIME_TO_DEADLINE_SECONDS, CONTENDING, OPENING] {
                self.labels.gauge(gauge).set(0);
            }
        });
    }
}

// === impl Calls ===

/// Records what one elector does.
#[derive(Debug)]
pub(super) struct Calls {
    labels: Labels,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the last renewal failed.
    renewal_failed: bool,
    vacant_since: Option<Moment>,
}

impl Calls {
    pub(super) fn new(labels: Labels) -> Self {
        Self { labels, state: Mutex::default() }
    }

    /// Starts all metrics at zero.
    fn begin(&self) {
        self.labels.counter(SLOWPATH_TOTAL, []).increment(0);
        for error in [ErrLockKind::Conflict, ErrLockKind::Timeout, ErrLockKind::Unreachable] {
            self.failures(LeaseCall::Renew, error).increment(0);
        }
    }

    /// How long the lease has had no holder.
    fn leaderless(&self, now: Moment) -> Duration {
        self.state().vacant_since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// The elector has ended, so there are no more observations.
    fn end(&self) {
        self.state().vacant_since = None;
    }

    fn failures(&self, call: LeaseCall, error: ErrLockKind) -> Counter {
        let labels = [
            Label::from_static_parts("call", call.as_str()),
            Label::from_static_parts("error", error.as_str()),
        ];
        self.labels.counter(LEASE_CALL_FAILURES_TOTAL, labels)
    }

    fn note_call(&self, call: LeaseCall, took: Duration, outcome: Result<(), ErrLockKind>) {
        let label = Label::from_static_parts("call", call.as_str());
        self.labels.histogram(LEASE_CALL_DURATION_SECONDS, [label]).record(took);
        if let Err(error) = outcome {
            self.failures(call, error).increment(1);
        }
        let state = &mut *self.state();
        if call == LeaseCall::Renew && state.renewal_failed {
            self.labels.counter(SLOWPATH_TOTAL, []).increment(1);
        }
        // There may be a read between two renewals.
        if call != LeaseCall::Read {
            state.renewal_failed = call == LeaseCall::Renew && outcome.is_err();
        }
    }

    fn note_vacancy(&self, vacant: bool, now: Moment) {
        let since = &mut self.state().vacant_since;
        if vacant {
            since.get_or_insert(now);
        } else if let Some(since) = since.take() {
            self.labels.histogram(LEADERLESS_GAP_SECONDS, []).record(now.saturating_since(since));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is always complete, even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseHook for Calls {
    fn called(&self, call: LeaseCall, took: Duration, outcome: Result<(), ErrLockKind>) {
        outlive(|| self.note_call(call, took, outcome));
    }

    fn vacant(&self, vacant: bool, now: Moment) {
        outlive(|| self.note_vacancy(vacant, now));
    }
}
