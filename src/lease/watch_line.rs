//! Reads a watch of leases, line by line.

use super::{
    error::{ErrLock, ErrLockKind},
    lock::LeaseEvent,
    name::LeaseName,
    record::LeaseRecord,
};
use http::StatusCode;
use serde_json::Value;

/// The shortest time that a watch asks for, in seconds. It adds a random time up to the same again, so that watches
/// do not all end together.
const SECONDS: u64 = 300;

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
    format!("{}&fieldSelector=metadata.name%3D{}", of_all(lease.namespace()), lease.name())
}

/// The path that watches all leases of a namespace.
pub(super) fn of_all(namespace: &str) -> String {
    let seconds = SECONDS + fastrand::u64(..SECONDS);
    format!("{}?watch=true&timeoutSeconds={seconds}", collection(namespace))
}

/// Reads a line. None for a bookmark. An error ends the watch: either the API server reports one, or the line does
/// not name a lease.
pub(super) fn news(line: &[u8]) -> Result<Option<News>, ErrLock> {
    let garbage = |message| ErrLock::new(ErrLockKind::Garbage, message);
    let mut event: Value = serde_json::from_slice(line)
        .map_err(|error| garbage(format!("a line of the watch is not JSON: {error}")))?;
    let object = event.get_mut("object").map(Value::take).unwrap_or_default();
    let wrap: fn(LeaseRecord) -> LeaseEvent = match event.get("type").and_then(Value::as_str) {
        Some("ADDED" | "MODIFIED") => LeaseEvent::Seen,
        Some("DELETED") => LeaseEvent::Deleted,
        Some("BOOKMARK") => return Ok(None),
        Some("ERROR") => return Err(failure(&object)),
        _ => return Err(garbage("a line of the watch has no known type".into())),
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

fn failure(status: &Value) -> ErrLock {
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    let message = status.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
    ErrLock::new(code.map_or(ErrLockKind::Refused, ErrLockKind::of), message)
}
