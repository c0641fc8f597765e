//! What a lease says, as far as a coordinated election needs it, and leases that say something else.

use kube_leader_gate::lease::{LeaseName, LeaseRecord};
use serde_json::{Value, json};
use std::time::Duration;

/// The holder of a lease that no candidate holds. No `LeaseCandidate` can have this name.
pub(crate) const COORDINATOR: &str = "(coordinator)";

/// The count in a lease that no candidate holds. It is no real one, so that what this holder says is about itself alone.
const COUNT: u64 = i32::MAX as u64;

/// The spec of a lease. A field that makes no sense is missing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) acquired: Option<String>,
    pub(crate) duration: Option<Duration>,
    pub(crate) preferred: Option<String>,
    /// The last holder has said that it writes no more.
    pub(crate) released: bool,
    /// A holder's times are there.
    pub(crate) renewed: bool,
    whole: Value,
}

// === impl Spec ===

impl Spec {
    pub(crate) fn of(record: &LeaseRecord) -> Self {
        let whole = record.clone().into_json()["spec"].take();
        let text = |field: &str| whole[field].as_str().map(str::to_owned);
        let duration = whole["leaseDurationSeconds"].as_u64().filter(|it| *it > 0).map(Duration::from_secs);
        let renewed = text("renewTime").is_some();
        let short = duration <= Some(Duration::from_secs(1));
        // If a user wipes the spec, its count is gone.
        let counts = !whole["leaseTransitions"].is_null();
        Self {
            acquired: text("acquireTime"),
            duration,
            preferred: text("preferredHolder").filter(|it| !it.is_empty()),
            released: record.holder().is_none() && counts && (short || !renewed),
            renewed,
            whole,
        }
    }
}

/// The lease `record` as held by the coordinator for `seconds`. Each `stamp` makes it a new one.
pub(crate) fn vacant(record: &LeaseRecord, seconds: u64, stamp: u64) -> LeaseRecord {
    changed(record, |spec| {
        spec["holderIdentity"] = COORDINATOR.into();
        spec["leaseDurationSeconds"] = seconds.into();
        spec["acquireTime"] = format!("not acquired {stamp}").into();
        spec["leaseTransitions"] = COUNT.into();
    })
}

/// A lease that is not there, to be shown as vacant.
pub(crate) fn missing(lease: &LeaseName) -> Option<LeaseRecord> {
    let metadata = json!({ "namespace": lease.namespace(), "name": lease.name(), "uid": "none",
                           "resourceVersion": "none" });
    LeaseRecord::from_json(json!({ "metadata": metadata, "spec": {} })).ok()
}

/// A vacant lease that the coordinator has released: it has no holder, and a time of its own.
pub(crate) fn freed(vacant: &LeaseRecord, stamp: u64) -> LeaseRecord {
    changed(vacant, |spec| {
        spec["holderIdentity"] = "".into();
        spec["leaseDurationSeconds"] = 1.into();
        spec["acquireTime"] = format!("released {stamp}").into();
    })
}

/// The lease `record`, which names this candidate, as free. With the time of the state that was shown before it, this is the
/// word of no holder.
pub(crate) fn free(record: &LeaseRecord, before: Option<&LeaseRecord>) -> LeaseRecord {
    let acquired = before.and_then(|before| Spec::of(before).acquired);
    changed(record, |spec| {
        spec["holderIdentity"] = "".into();
        spec["leaseDurationSeconds"] = 1.into();
        // A lease that the coordinator has made has no count, and would seem to be wiped by a user.
        spec["leaseTransitions"] = record.transitions().into();
        match acquired {
            Some(acquired) => spec["acquireTime"] = acquired.into(),
            None => remove(spec, "acquireTime"),
        }
    })
}

fn changed(record: &LeaseRecord, change: impl FnOnce(&mut Value)) -> LeaseRecord {
    let mut object = record.clone().into_json();
    if !object["spec"].is_object() {
        object["spec"] = json!({});
    }
    change(&mut object["spec"]);
    // Cannot fail: its metadata are as they were.
    LeaseRecord::from_json(object).unwrap_or_else(|_| record.clone())
}

fn remove(spec: &mut Value, field: &str) {
    if let Some(spec) = spec.as_object_mut() {
        spec.remove(field);
    }
}
