//! Metrics of lease calls, and of the time without a holder.

use super::{
    labels::{Labels, outlive},
    names::{LEADERLESS_GAP_SECONDS, LEASE_CALL_DURATION_SECONDS, LEASE_CALL_FAILURES_TOTAL, SLOWPATH_TOTAL},
};
use crate::{
    election::{LeaseCall, LeaseHook},
    leadership::Moment,
    lease::ErrLockKind,
};
use metrics::Label;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

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
    pub(super) fn begin(&self) {
        self.labels.counter(SLOWPATH_TOTAL, []).increment(0);
        for error in [ErrLockKind::Conflict, ErrLockKind::Timeout, ErrLockKind::Unreachable] {
            self.failures(LeaseCall::Renew, error).increment(0);
        }
    }

    /// How long the lease has had no holder.
    pub(super) fn leaderless(&self, now: Moment) -> Duration {
        self.state().vacant_since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// The elector has ended, so there are no more observations.
    pub(super) fn end(&self) {
        self.state().vacant_since = None;
    }

    fn failures(&self, call: LeaseCall, error: ErrLockKind) -> metrics::Counter {
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
