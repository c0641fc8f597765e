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

    /// The times of its election. No candidate waits for the end of this lease, so the gate stays open for as long as
    /// a lease may last, even if the process is suspended. No candidate takes over either, so nothing waits for the margin, and
    /// the pause after a term that was given up is short.
    pub(crate) fn timing() -> LeaseTiming {
        let margin = Duration::from_millis(1);
        LeaseTiming::new(LONGEST_SANE, LONGEST_SANE.saturating_sub(margin), Duration::from_secs(2))
            .expect("a day is the longest lease")
    }

    /// Stores what `write` makes of the present lease. Nothing else runs in between.
    fn store(
        &self,
        write: impl FnOnce(Option<&LeaseRecord>) -> Result<Value, ErrLock>,
    ) -> Result<LeaseRecord, ErrLock> {
        let mut outcome = Err(ErrLock::new(ErrLockKind::Conflict, "the lease was not written"));
        self.stored.send_if_modified(|stored| {
            let version: u64 =
                stored.as_ref().and_then(|it| it.resource_version().parse().ok()).unwrap_or_default();
            outcome = write(stored.as_ref()).and_then(|mut object| {
                object["metadata"]["resourceVersion"] = (version + 1).to_string().into();
                object["metadata"]["uid"] = "this-process".into();
                LeaseRecord::from_json(object)
            });
            let written = outcome.as_ref().ok().cloned();
            let modified = written.is_some();
            *stored = written.or_else(|| stored.take());
            modified
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
        self.store(|stored| match stored {
            None => Ok(claim.new_lease(&self.lease)),
            Some(_) => Err(ErrLock::new(ErrLockKind::Conflict, "the lease exists")),
        })
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.store(|stored| match stored {
            Some(stored) if stored.resource_version() == seen.resource_version() => {
                Ok(seen.with(claim).into_json())
            }
            Some(_) => Err(ErrLock::new(ErrLockKind::Conflict, "the lease has changed")),
            None => Err(ErrLock::new(ErrLockKind::NotFound, "there is no lease")),
        })
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        let mut stored = self.stored.subscribe();
        stored.mark_changed();
        let states = stream::unfold(stored, |mut stored| async move {
            stored.changed().await.ok()?;
            let state = stored.borrow_and_update().clone();
            Some((state, stored))
        });
        Ok(states.filter_map(|state| ready(state.map(|it| Ok(LeaseEvent::Seen(it))))).boxed())
    }
}
