//! Reads a watch of leases, line by line.

use super::{
    error::{ErrLock, ErrLockKind},
    lock::LeaseEvent,
    name::LeaseName,
    record::LeaseRecord,
};
use crate::api::{self, Change};

/// News of one lease.
pub(super) struct News {
    /// The name of the lease.
    pub(super) name: String,
    /// The version of the object. None if it is not a number.
    pub(super) version: Option<u64>,
    /// The event. An error if the object is not a lease.
    pub(super) event: Result<LeaseEvent, ErrLock>,
}

/// The path of the leases in the namespace of `lease`.
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
pub(super) fn news(line: &[u8]) -> Result<Option<News>, ErrLock> {
    let garbage = |message| ErrLock::new(ErrLockKind::Garbage, message);
    let Some((change, object)) = api::change(line)? else { return Ok(None) };
    let wrap: fn(LeaseRecord) -> LeaseEvent = match change {
        Change::Seen => LeaseEvent::Seen,
        Change::Deleted => LeaseEvent::Deleted,
    };
    let metadata = |key| object.get("metadata")?.get(key)?.as_str();
    let Some(name) = metadata("name").map(str::to_owned) else {
        return Err(garbage("a line of the watch names no object".into()));
    };
    let version = metadata("resourceVersion").and_then(|version| version.parse().ok());
    let record = LeaseRecord::from_json(object);
    let event = record.map(wrap).map_err(|error| garbage(error.to_string()));
    Ok(Some(News { name, version, event }))
}
