//! The task that passes all counts to the recorder.

use super::{
    calls::Calls,
    labels::{Labels, outlive},
    names::{
        LEADERLESS_SECONDS, LOSSES_TOTAL, MASTER_STATUS, TIME_TO_DEADLINE_SECONDS, TRANSITIONS_TOTAL,
        WRITES_UNDER_WAY, describe,
    },
    tally::Tally,
};
use crate::{
    election::Candidate,
    leadership::{LeadershipState, Loss, Term},
};
use futures_util::StreamExt;
use metrics::{Counter, Label};
use std::{sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The longest age of a gauge.
const PERIOD: Duration = Duration::from_secs(1);

struct Attendant {
    labels: Labels,
    tally: Arc<Tally>,
    calls: Arc<Calls>,
    candidate: Candidate,
    holder: Option<Arc<str>>,
    term: Option<Term>,
}

pub(super) async fn attend(
    labels: Labels,
    tally: Arc<Tally>,
    calls: Arc<Calls>,
    candidate: Candidate,
    stopped: CancellationToken,
) {
    let mut changes = candidate.changes();
    let mut attendant = Attendant { labels, tally, calls, candidate, holder: None, term: None };
    attendant.begin();
    let mut period = interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stopped.cancelled() => break,
            Some(state) = changes.next() => attendant.follow(state),
            _ = period.tick() => {}
        }
        attendant.publish();
    }
}

impl Attendant {
    /// Starts all metrics at zero.
    fn begin(&self) {
        describe();
        Tally::begin(&self.labels);
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
        labels.gauge(TIME_TO_DEADLINE_SECONDS).set(candidate.time_left().unwrap_or_default());
        labels.gauge(LEADERLESS_SECONDS).set(self.calls.leaderless(candidate.leadership.now()));
        let writes = u32::try_from(candidate.writes_under_way()).unwrap_or(u32::MAX);
        labels.gauge(WRITES_UNDER_WAY).set(writes);
        self.tally.publish(labels);
    }

    fn losses(&self, loss: Loss) -> Counter {
        self.labels.counter(LOSSES_TOTAL, [Label::from_static_parts("loss", loss.as_str())])
    }
}

/// Runs when it ends: by an order, because its election was dropped, or because the recorder has panicked.
impl Drop for Attendant {
    fn drop(&mut self) {
        outlive(|| {
            self.follow(self.candidate.state());
            self.calls.end();
            self.publish();
            // Dropping an election closes its gate, perhaps a moment later.
            self.labels.gauge(MASTER_STATUS).set(0);
            self.labels.gauge(TIME_TO_DEADLINE_SECONDS).set(0);
        });
    }
}
