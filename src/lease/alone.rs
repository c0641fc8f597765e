//! A lease in this process alone: no other process can take it.

use super::{
    error::{ErrLock, ErrLockKind},
    lock::{LeaseEvent, Lock},
    name::LeaseName,
    record::{LONGEST_SANE, LeaseRecord},
    timing::LeaseTiming,
    update::LeaseUpdate,
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use serde_json::Value;
use std::{future::ready, time::Duration};
use tokio::sync::watch;

/// The lock of an election with one candidate.
pub(crate) struct Alone {
    lease: LeaseName,
    stored: watch::Sender<Option<LeaseRecord>>,
}

impl Alone {
    pub(crate) fn new(lease: LeaseName) -> Self {
        Self { lease, stored: watch::Sender::new(None) }
    }

    /// The times of an election over this lock. No other candidate waits for the end of this lease, so the renew deadline is
    /// almost as long as a lease may last: the gate stays open even if the process is suspended. No other candidate can take
    /// over, so the safety margin may be tiny. After a term that the process gave up, it rests for one retry period, which is
    /// short.
    pub(crate) fn timing() -> LeaseTiming {
        let margin = Duration::from_millis(1);
        LeaseTiming::new(LONGEST_SANE, LONGEST_SANE.saturating_sub(margin), Duration::from_secs(2))
            .expect("a day is the longest lease")
    }

    /// Stores `object`, if `seen` is the present version of the lease.
    fn store(&self, seen: Option<&LeaseRecord>, mut object: Value) -> Result<LeaseRecord, ErrLock> {
        let mut outcome = Err(ErrLock::new(ErrLockKind::Conflict, "the lease has changed"));
        self.stored.send_if_modified(|stored| {
            let is_newest =
                stored.as_ref().map(LeaseRecord::resource_version) == seen.map(LeaseRecord::resource_version);
            if is_newest {
                let version = seen.and_then(LeaseRecord::version).map_or(1, |version| version + 1);
                object["metadata"]["resourceVersion"] = version.to_string().into();
                object["metadata"]["uid"] = "this-process".into();
                outcome = LeaseRecord::from_json(object);
                *stored = outcome.as_ref().ok().cloned();
            }
            is_newest
        });
        outcome
    }
}

impl Lock for Alone {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        Ok(self.stored.borrow().clone())
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        tracing::info!(
            "there is no election: this process leads by itself, and so would each further replica"
        );
        self.store(None, claim.new_lease(&self.lease))
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.store(Some(seen), seen.with(claim).into_json())
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        let mut stored = self.stored.subscribe();
        stored.mark_changed();
        let states = stream::unfold(stored, |mut stored| async move {
            stored.changed().await.ok()?;
            let state = stored.borrow_and_update().clone();
            Some((state, stored))
        });
        Ok(states.filter_map(|state| ready(state.map(|lease| Ok(LeaseEvent::Seen(lease))))).boxed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::LeaseUpdate;
    use std::collections::BTreeMap;

    fn claim() -> LeaseUpdate {
        LeaseUpdate {
            holder: "a".into(),
            duration_seconds: 15,
            acquire_time: "2026-01-02T03:04:05.000000Z".into(),
            renew_time: "2026-01-02T03:04:05.000000Z".into(),
            transitions: 1,
            annotations: BTreeMap::new(),
            new_metadata: serde_json::Map::new(),
        }
    }

    /// A layer of the lock may show the lease in another form. Only the uid and the resource version say whether it has changed.
    #[tokio::test]
    async fn s6_update_swaps_the_version_that_was_seen() {
        let alone = Alone::new(LeaseName::new("default", "operator").unwrap());
        let created = alone.create(&claim()).await.unwrap();
        let mut shown = created.clone().into_json();
        shown["metadata"]["labels"] = serde_json::json!({ "shown-by": "a layer" });
        let shown = LeaseRecord::from_json(shown).unwrap();
        alone.update(&shown, &claim()).await.expect("the swap of the present version");
    }
}
