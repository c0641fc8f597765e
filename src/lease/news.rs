//! News of leases: reads the lines of a watch, and keeps the events of a shared watch that one lock has not read yet.

use super::{
    error::{ErrLock, ErrLockKind},
    lock::LeaseEvent,
    name::LeaseName,
    record::LeaseRecord,
};
use crate::api::{self, Change};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
};
use tokio::sync::Notify;

/// News of one lease.
pub(super) struct News {
    /// The name of the lease.
    pub(super) name: String,
    /// The version of the object. None if it is not a number.
    pub(super) version: Option<u64>,
    /// The event. An error if the object is not a lease.
    pub(super) event: Result<LeaseEvent, ErrLock>,
}

/// The path of the leases in `namespace`.
pub(super) fn collection(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

/// The path that watches `lease` alone.
pub(super) fn of_one(lease: &LeaseName) -> String {
    api::watch_of_one(&collection(lease.namespace()), lease.name())
}

/// The path that watches all leases of a namespace.
pub(super) fn of_all(namespace: &str) -> String {
    api::watch_of_all(&collection(namespace))
}

/// Reads a line. None for a bookmark. An error ends the watch: either the API server reports one, or the line does
/// not name a lease.
pub(super) fn read(line: &[u8]) -> Result<Option<News>, ErrLock> {
    let Some((change, object)) = api::change(line)? else { return Ok(None) };
    let wrap: fn(LeaseRecord) -> LeaseEvent = match change {
        Change::Seen => LeaseEvent::Seen,
        Change::Deleted => LeaseEvent::Deleted,
    };
    let metadata = |key| object.get("metadata")?.get(key)?.as_str();
    let Some(name) = metadata("name").map(str::to_owned) else {
        return Err(ErrLock::new(ErrLockKind::BadAnswer, "a line of the watch names no object"));
    };
    let version = metadata("resourceVersion").and_then(|version| version.parse().ok());
    Ok(Some(News { name, version, event: LeaseRecord::from_json(object).map(wrap) }))
}

/// The events of a shared watch that one lock has not read yet. The slot is never full: it holds at most two records, the
/// newest state and a deletion. So a slow lock does not delay the others.
#[derive(Debug, Default)]
pub(super) struct EventSlot {
    pending: Mutex<Pending>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    deleted: Option<LeaseRecord>,
    /// The state after the deletion.
    seen: Option<LeaseRecord>,
    over: bool,
    error: Option<ErrLock>,
}

// === impl EventSlot ===

impl EventSlot {
    pub(super) fn put(&self, event: LeaseEvent) {
        {
            let mut pending = self.pending();
            match event {
                LeaseEvent::Seen(record) => pending.seen = Some(record),
                LeaseEvent::Deleted(record) => {
                    pending.seen = None;
                    pending.deleted = Some(record);
                }
            }
        }
        self.news.notify_one();
    }

    /// Ends the events. The lock still gets the events in this slot, then the error, and then nothing. Only the
    /// first call counts.
    pub(super) fn end(&self, error: Option<ErrLock>) {
        {
            let mut pending = self.pending();
            if !pending.over {
                pending.over = true;
                pending.error = error;
            }
        }
        self.news.notify_one();
    }

    /// Waits for the next event. After an error or none, there are no more events. Cancel-safe. Only one task may wait.
    pub(super) async fn next(&self) -> Option<Result<LeaseEvent, ErrLock>> {
        loop {
            if let Poll::Ready(next) = self.pending().take() {
                return next;
            }
            self.news.notified().await;
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn take(&mut self) -> Poll<Option<Result<LeaseEvent, ErrLock>>> {
        if let Some(record) = self.deleted.take() {
            return Poll::Ready(Some(Ok(LeaseEvent::Deleted(record))));
        }
        if let Some(record) = self.seen.take() {
            return Poll::Ready(Some(Ok(LeaseEvent::Seen(record))));
        }
        if self.over { Poll::Ready(self.error.take().map(Err)) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(version: u32) -> LeaseRecord {
        let metadata = json!({ "uid": "u", "resourceVersion": version.to_string() });
        LeaseRecord::from_json(json!({ "metadata": metadata })).unwrap()
    }

    #[tokio::test]
    async fn a_slot_keeps_the_newest_state_and_deletion() {
        let slot = EventSlot::default();
        for version in 1..4 {
            slot.put(LeaseEvent::Seen(record(version)));
        }
        assert_eq!(slot.next().await.unwrap().unwrap(), LeaseEvent::Seen(record(3)));
        slot.put(LeaseEvent::Seen(record(4)));
        slot.put(LeaseEvent::Deleted(record(5)));
        slot.put(LeaseEvent::Seen(record(6)));
        slot.put(LeaseEvent::Seen(record(7)));
        slot.end(None);
        slot.end(Some(ErrLock::new(ErrLockKind::Refused, "late")));
        assert_eq!(slot.next().await.unwrap().unwrap(), LeaseEvent::Deleted(record(5)));
        assert_eq!(slot.next().await.unwrap().unwrap(), LeaseEvent::Seen(record(7)));
        assert!(slot.next().await.is_none());
        assert!(slot.next().await.is_none());
    }
}
