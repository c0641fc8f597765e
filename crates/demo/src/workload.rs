//! What each replica does all the time: read, and try to write.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Error,
    api::{Patch, PatchParams},
};
use kube_leader_gate::{ErrLeadershipLost, ErrNotLeader};
use serde_json::json;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// A read that takes longer has failed. Writes need no such bound: the gate cuts them off.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a replica reads and tries to write.
#[derive(Clone, Copy)]
pub struct Pace {
    pub read: Duration,
    pub write: Duration,
}

/// The outcomes of a replica's requests, over all its lives.
#[derive(Default)]
pub struct Counters {
    reads: AtomicU64,
    written: AtomicU64,
    rejected: AtomicU64,
    cut_off: AtomicU64,
    failed: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Reads that were answered.
    pub reads: u64,
    /// Writes that were answered.
    pub written: u64,
    /// Writes that the gate rejected: nothing was sent.
    pub rejected: u64,
    /// Writes that the gate cut off when leadership ended.
    pub cut_off: u64,
    /// Requests that failed for other reasons.
    pub failed: u64,
}

impl Counters {
    pub fn now(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            reads: read(&self.reads),
            written: read(&self.written),
            rejected: read(&self.rejected),
            cut_off: read(&self.cut_off),
            failed: read(&self.failed),
        }
    }
}

impl Counts {
    /// What has come since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            written: self.written - before.written,
            rejected: self.rejected - before.rejected,
            cut_off: self.cut_off - before.cut_off,
            failed: self.failed - before.failed,
        }
    }

    /// Per second, when this is what came in that time.
    pub fn per(&self, time: Duration) -> Self {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = |count: u64| (count * 1000 + millis / 2) / millis;
        Self {
            reads: rate(self.reads),
            written: rate(self.written),
            rejected: rate(self.rejected),
            cut_off: rate(self.cut_off),
            failed: rate(self.failed),
        }
    }
}

/// Reads and writes the object until `stop` is set. Requests that are open then run to their end.
pub async fn work(
    api: Api<ConfigMap>,
    object: &str,
    writer: &str,
    pace: Pace,
    counters: &Counters,
    stop: &AtomicBool,
) {
    let reading = async {
        let mut ticks = ticks(pace.read);
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            let counter = match timeout(PATIENCE, api.get(object)).await {
                Ok(Ok(_)) => &counters.reads,
                Ok(Err(_)) | Err(_) => &counters.failed,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    };
    let writing = async {
        let mut ticks = ticks(pace.write);
        let mut attempt = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            attempt += 1;
            // Each write changes something, so that an observer can see each one.
            let change = json!({ "data": { "writer": writer, "attempt": attempt.to_string() } });
            let outcome = api.patch(object, &PatchParams::default(), &Patch::Merge(change)).await;
            counters.outcome(outcome.map(drop)).fetch_add(1, Ordering::Relaxed);
        }
    };
    tokio::join!(reading, writing);
}

impl Counters {
    fn outcome(&self, outcome: Result<(), Error>) -> &AtomicU64 {
        let Err(error) = outcome else { return &self.written };
        if ErrNotLeader::find(&error).is_some() {
            &self.rejected
        } else if ErrLeadershipLost::find(&error).is_some() {
            &self.cut_off
        } else {
            &self.failed
        }
    }
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    // A replica that was delayed does not catch up on missed writes.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
