//! The write log: which user sent which write, and its outcome.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use crate::request::RequestInfo;

/// An instant, and its place in the order of all that the server saw.
///
/// With a paused clock, many things happen at one instant. `order` tells them apart. A comparison looks at `order`
/// alone.
#[derive(Clone, Copy, Debug)]
pub struct LogTime {
    /// The instant, on tokio's clock.
    pub at: Instant,
    /// A number that grows with each time that one server records.
    pub order: u64,
}

/// A request that reached the server with a method other than GET, HEAD and OPTIONS.
#[derive(Clone, Debug)]
pub struct WriteRecord {
    /// The bearer token, or `anonymous`.
    pub user: String,
    /// The `User-Agent` header. Empty without one.
    pub user_agent: String,
    /// The HTTP method.
    pub method: Method,
    /// On a resource: `create`, `update`, `patch`, `delete` or `deletecollection`. On another path: `post`,
    /// `put`, `patch` or `delete`. Empty for a method that Kubernetes does not know.
    pub verb: &'static str,
    /// The path as the client sent it, without the query.
    pub path: String,
    /// The API group. Empty for the core group, and if the path names no resource.
    pub group: String,
    /// The API version. Empty if the path names no resource.
    pub version: String,
    /// The resource. Empty if the path names none.
    pub resource: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path, or the name of the created object.
    pub name: Option<String>,
    /// The subresource in the path.
    pub subresource: Option<String>,
    /// Whether the query asks for a dry run.
    pub dry_run: bool,
    /// `metadata.resourceVersion` in the body of a create or update: the version that the client has seen. On a real
    /// server only for Leases, of whose requests its audit log keeps the bodies.
    pub seen_version: Option<String>,
    /// When the head of the request arrived.
    pub received: LogTime,
    /// When the request took effect, or when the server refused it. This is not when the answer arrived.
    ///
    /// None if neither has happened: a fault still delays the request, a fault dropped the connection before
    /// the effect, or the client hung up.
    pub completed: Option<LogTime>,
    /// The HTTP status of the answer, even if the client never got the answer. 0 without `completed`.
    pub status: u16,
    /// The Lease as a successful write stored it.
    pub lease: Option<StoredLease>,
}

/// The fields of a Lease that leader election uses, as the server stored them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredLease {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`. 0 if it is no number.
    pub resource_version: u64,
    /// `spec.holderIdentity`. Empty if absent.
    pub holder_identity: String,
    /// `spec.leaseTransitions`.
    pub lease_transitions: Option<i64>,
    /// `spec.leaseDurationSeconds`.
    pub lease_duration_seconds: Option<i64>,
    /// `spec.acquireTime`.
    pub acquire_time: Option<String>,
    /// `spec.renewTime`.
    pub renew_time: Option<String>,
    /// `metadata.annotations`, those that are text.
    pub annotations: BTreeMap<String, String>,
}

/// Reads of one kind by one user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadKind {
    pub(crate) user: String,
    pub(crate) verb: &'static str,
    pub(crate) resource: String,
}

/// The log. It grows with each write, until the writes are taken.
#[derive(Debug, Default)]
pub(crate) struct Log {
    order: u64,
    /// How many writes were taken.
    taken: usize,
    pub(crate) writes: Vec<WriteRecord>,
    pub(crate) reads: BTreeMap<ReadKind, u64>,
}

/// The place of a write in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry(usize);

// === impl LogTime ===

impl PartialEq for LogTime {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for LogTime {}

impl PartialOrd for LogTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LogTime {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

// === impl WriteRecord ===

impl WriteRecord {
    /// Whether the write took effect: the status is 2xx, and it was no dry run.
    #[must_use]
    pub fn took_effect(&self) -> bool {
        (200..300).contains(&self.status) && !self.dry_run
    }
}

// === impl StoredLease ===

impl StoredLease {
    /// Reads a Lease in JSON. A field of another type counts as absent.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let spec = &object["spec"];
        let text = |it: &Value| it.as_str().map(str::to_owned);
        let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
        Self {
            uid: text(&object["metadata"]["uid"]).unwrap_or_default(),
            resource_version: text(&object["metadata"]["resourceVersion"])
                .and_then(|it| it.parse().ok())
                .unwrap_or_default(),
            holder_identity: text(&spec["holderIdentity"]).unwrap_or_default(),
            lease_transitions: spec["leaseTransitions"].as_i64(),
            lease_duration_seconds: spec["leaseDurationSeconds"].as_i64(),
            acquire_time: text(&spec["acquireTime"]),
            renew_time: text(&spec["renewTime"]),
            annotations: annotations.filter_map(|(name, it)| Some((name.clone(), text(it)?))).collect(),
        }
    }
}

// === impl Log ===

impl Log {
    fn moment(&mut self) -> LogTime {
        self.order += 1;
        LogTime { at: Instant::now(), order: self.order }
    }

    /// Records that a request has arrived. A read is only counted.
    pub(crate) fn arrived(&mut self, info: &RequestInfo) -> Option<Entry> {
        let target = info.target();
        let resource = target.map(|it| it.collection.resource.clone()).unwrap_or_default();
        if !info.is_write() {
            *self
                .reads
                .entry(ReadKind { user: info.user.clone(), verb: info.verb, resource })
                .or_default() += 1;
            return None;
        }
        let received = self.moment();
        self.writes.push(WriteRecord {
            user: info.user.clone(),
            user_agent: info.user_agent.clone(),
            method: info.method.clone(),
            verb: info.verb,
            path: info.path.clone(),
            group: target.map(|it| it.collection.group.clone()).unwrap_or_default(),
            version: target.map(|it| it.collection.version.clone()).unwrap_or_default(),
            resource,
            namespace: target.and_then(|it| it.namespace.clone()),
            name: target.and_then(|it| it.name.clone()),
            subresource: target.and_then(|it| it.subresource.clone()),
            dry_run: info.asks_dry_run(),
            seen_version: None,
            received,
            completed: None,
            status: 0,
            lease: None,
        });
        Some(Entry(self.taken + self.writes.len() - 1))
    }

    pub(crate) fn take(&mut self) -> Vec<WriteRecord> {
        self.taken += self.writes.len();
        std::mem::take(&mut self.writes)
    }

    /// None if the write was taken.
    fn record(&mut self, entry: Entry) -> Option<&mut WriteRecord> {
        self.writes.get_mut(entry.0.checked_sub(self.taken)?)
    }

    /// Records the outcome of a write. Only the first call counts. The caller holds the lock under which the
    /// write took effect.
    pub(crate) fn completed(&mut self, entry: Entry, status: u16, object: Option<&Value>) {
        let completed = self.moment();
        let Some(record) = self.record(entry).filter(|it| it.completed.is_none()) else {
            return;
        };
        record.completed = Some(completed);
        record.status = status;
        let Some(object) = object else { return };
        if record.name.is_none() {
            record.name = object["metadata"]["name"].as_str().map(str::to_owned);
        }
        if record.group == "coordination.k8s.io" && record.resource == "leases" {
            record.lease = Some(StoredLease::of(object));
        }
    }

    /// Records what the body says. It decides whether the write is a dry run.
    pub(crate) fn decoded(&mut self, entry: Entry, dry: bool, seen_version: Option<&str>) {
        if let Some(record) = self.record(entry) {
            record.dry_run = dry;
            record.seen_version = seen_version.map(str::to_owned);
        }
    }
}
