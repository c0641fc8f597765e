//! Candidates and leases for tests. The times count from one moment.

use super::{Decision, Machine, Next, Order, View};
use crate::{
    election::preemption::{HANDOVER, Priority},
    leadership::Moment,
    lease::{Identity, LeaseRecord, LeaseTiming, LeaseUpdate},
};
use serde_json::{Value, json};
use std::time::Duration;

const ORIGIN: Moment = Moment::from_nanos(1_000_000_000_000);

pub(super) fn at(seconds: u64) -> Moment {
    ORIGIN.saturating_add(Duration::from_secs(seconds))
}

/// How long the admitted writes of a candidate may take when it gives way.
pub(super) const DRAIN: Duration = Duration::from_secs(5);

/// All writes of the process have ended.
pub(super) const SETTLED: Moment = Moment::from_nanos(0);

pub(super) fn machine() -> Machine {
    with_priority("me", None)
}

/// A candidate that precedes all others.
pub(super) fn preceding() -> Machine {
    with_priority("me", Priority::new("me", |_| true).ok())
}

pub(super) fn with_priority(name: &str, priority: Option<Priority>) -> Machine {
    Machine::new(Identity::new(name).unwrap(), LeaseTiming::fast(), priority, DRAIN)
}

impl Machine {
    /// Whether a former writer may begin a write.
    pub(super) fn is_held_back(&self, now: Moment) -> bool {
        self.formers.until(now).is_some()
    }
}

/// A process without a term, whose writes have all ended.
pub(super) fn without_term(seconds: u64) -> View {
    View {
        now: at(seconds),
        term: None,
        is_valid: false,
        is_open: false,
        writing: false,
        may_begin: true,
        settles_at: SETTLED,
    }
}

/// A process whose gate is open for the term of the lease.
pub(super) fn with_term(machine: &Machine, seconds: u64) -> View {
    let term = machine.record().map(LeaseRecord::term);
    View { term, is_valid: true, is_open: true, ..without_term(seconds) }
}

/// What is next under this order.
pub(super) fn next(machine: &Machine, order: Order, view: &View) -> Next {
    Machine { order, ..machine.clone() }.next(view)
}

/// `record` after another candidate has preempted it.
pub(super) fn preempted(record: &LeaseRecord, version: u64) -> LeaseRecord {
    let from = record.transitions();
    edited(record, version, |lease| {
        lease["metadata"]["annotations"] = json!({ HANDOVER: format!("from {from} to {}", from + 1) });
        lease["spec"]["holderIdentity"] = "other".into();
        lease["spec"]["leaseTransitions"] = (from + 1).into();
    })
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
pub(super) fn written(version: u64, claim: &LeaseUpdate) -> LeaseRecord {
    record(version, &json!({})).with(claim)
}

/// A candidate that leads since 0 s.
pub(super) fn leading() -> Machine {
    let mut machine = machine();
    machine.observe(held(1, "", 0), at(0));
    let claim = machine.acquisition(at(0), "now".into());
    machine.claims.settle_last();
    let own = written(2, &claim);
    machine.observe(own.clone(), at(0));
    machine.claims.stood(at(0));
    machine.opened();
    machine
}

/// `record` as another program changes it.
pub(super) fn edited(record: &LeaseRecord, version: u64, edit: impl FnOnce(&mut Value)) -> LeaseRecord {
    let mut object = record.clone().into_json();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    edit(&mut object);
    LeaseRecord::from_json(object).unwrap()
}

/// Whether `take_in` changes what the candidate knows.
pub(super) fn is_news(machine: &mut Machine, take_in: impl FnOnce(&mut Machine)) -> bool {
    let before = machine.record().cloned();
    take_in(machine);
    machine.record() != before.as_ref()
}

/// A lease with all that a holder writes.
pub(super) fn spec(
    version: u64,
    holder: &str,
    term: u64,
    acquired: &str,
    renewed: &str,
    seconds: u64,
) -> LeaseRecord {
    record(
        version,
        &json!({ "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": term,
                             "acquireTime": acquired, "renewTime": renewed }),
    )
}

/// Takes in the answer to a read that no news has overtaken.
pub(super) fn reads(machine: &mut Machine, news: LeaseRecord, seconds: u64) {
    let before = machine.version().map(str::to_owned);
    machine.observe_read(news, before.as_deref(), at(seconds));
}

/// Takes the lease if it may. Returns whether its gate is then open.
pub(super) fn opens(machine: &mut Machine, version: u64, now: u64) -> bool {
    let decision = machine.decide(at(now), false);
    if !matches!(decision, Decision::Take | Decision::Preempt) {
        return false;
    }
    let seen = machine.record().unwrap().clone();
    let claim = machine.acquisition(at(now), format!("claim {version}"));
    machine.claims.settle_last();
    machine.observe(edited(&seen.with(&claim), version, |_| ()), at(now));
    machine.is_current() && !machine.is_held_back(at(now))
}
