//! The writes of a candidate, and their outcomes.

use crate::elector::object_of;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Error,
    api::{Patch, PatchParams},
};
use kube_leader_gate::{CancellationToken, ErrLeadershipLost, ErrNotLeader};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

/// The writers write one `ConfigMap` through the gate. Restless ones have a `ConfigMap` each, so that the server has no
/// conflict to solve.
#[derive(Clone, Debug)]
pub struct Writers {
    pub api: Api<ConfigMap>,
    pub name: String,
    pub identity: String,
    pub count: usize,
    pub every: Duration,
    pub restless: bool,
    pub counters: Arc<Counters>,
}

/// The outcomes of their writes.
#[derive(Debug, Default)]
pub struct Counters {
    attempts: AtomicU64,
    written: AtomicU64,
    rejected: AtomicU64,
    cut_off: AtomicU64,
    failed: AtomicU64,
}

impl Writers {
    /// Writes until told to stop. Open writes then finish, or the gate cuts them off. Dropping it drops the writes.
    pub async fn write(self, stop: CancellationToken) {
        let mut writers = JoinSet::new();
        for number in 0..self.count {
            let mut writer = self.clone();
            if self.restless {
                writer.name = object_of(&self.name, &self.identity, number);
            }
            writers.spawn(writer.write_alone(stop.clone()));
        }
        writers.join_all().await;
    }

    async fn write_alone(self, stop: CancellationToken) {
        let Self { api, name, identity, every, restless, counters, .. } = self;
        let mut ticks = interval(every);
        // A candidate that was delayed does not catch up on missed writes.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pauses = true;
        while !stop.is_cancelled() {
            if pauses {
                ticks.tick().await;
            }
            let attempt = counters.attempts.fetch_add(1, Relaxed);
            let change = json!({ "data": { &identity: attempt.to_string() } });
            let outcome = api.patch(&name, &PatchParams::default(), &Patch::Merge(change)).await;
            pauses = !restless || outcome.is_err();
            counters.outcome(&outcome.map(drop)).fetch_add(1, Relaxed);
        }
    }
}

impl Counters {
    fn outcome(&self, outcome: &Result<(), Error>) -> &AtomicU64 {
        let Err(error) = outcome else { return &self.written };
        if ErrNotLeader::find(error).is_some() {
            &self.rejected
        } else if ErrLeadershipLost::find(error).is_some() {
            &self.cut_off
        } else {
            &self.failed
        }
    }

    pub fn json(&self) -> Value {
        let outcomes = [&self.written, &self.rejected, &self.cut_off, &self.failed];
        let [written, rejected, cut_off, failed] = outcomes.map(|it| it.load(Relaxed));
        // Includes open writes.
        let unanswered = self.attempts.load(Relaxed).saturating_sub(written + rejected + cut_off + failed);
        json!({
            "written": written,
            "rejected": rejected,
            "cut_off": cut_off,
            "failed": failed,
            "unanswered": unanswered,
        })
    }
}
