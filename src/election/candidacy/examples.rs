//! Candidates and leases for tests. The times count from one moment.

use super::Candidacy;
use crate::{
    leadership::Moment,
    lease::{Claim, Identity, LeaseRecord, LeaseTiming},
};
use serde_json::{Value, json};
use std::time::Duration;

const ORIGIN: Moment = Moment::from_nanos(1_000_000_000_000);

pub(super) fn at(seconds: u64) -> Moment {
    ORIGIN.saturating_add(Duration::from_secs(seconds))
}

pub(super) fn candidacy() -> Candidacy {
    Candidacy::new(Identity::new("me").unwrap(), LeaseTiming::fast(), None)
}

pub(super) fn record(version: u64, spec: &Value) -> LeaseRecord {
    let metadata = json!({ "name": "operator", "uid": "u", "resourceVersion": version.to_string() });
    LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// The lease of this holder. If there is none, the last one has released it.
pub(super) fn held(version: u64, holder: &str, renewed: u64) -> LeaseRecord {
    let (seconds, acquired) = if holder.is_empty() { (1, "released") } else { (15, "then") };
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3,
                       "acquireTime": acquired, "renewTime": renewed.to_string() });
    record(version, &spec)
}

/// The server's answer to a claim.
pub(super) fn written(version: u64, claim: &Claim) -> LeaseRecord {
    record(version, &json!({})).with(claim)
}

/// A candidate that leads since 0 s.
pub(super) fn leading() -> Candidacy {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "", 0), at(0));
    let claim = candidacy.acquisition(at(0), "now".into());
    candidacy.claim_is_settled();
    let own = written(2, &claim);
    candidacy.observe(own.clone(), at(0));
    candidacy.stood(at(0));
    candidacy.opened(own.term());
    candidacy
}

/// `record` as another program changes it.
pub(super) fn edited(record: &LeaseRecord, version: u64, edit: impl FnOnce(&mut Value)) -> LeaseRecord {
    let mut object = record.clone().into_json();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    edit(&mut object);
    LeaseRecord::from_json(object).unwrap()
}

/// Whether `take_in` changes what the candidate knows.
pub(super) fn is_news(candidacy: &mut Candidacy, take_in: impl FnOnce(&mut Candidacy)) -> bool {
    let before = candidacy.record().cloned();
    take_in(candidacy);
    candidacy.record() != before.as_ref()
}
