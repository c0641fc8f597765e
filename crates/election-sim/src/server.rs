//! The API server's one lease, its past, and what the judge knows of each state.

use kube_leader_gate::{
    internal::{ASKED, CLAIM, WAITS_FOR},
    lease::{LeaseName, LeaseRecord, LeaseUpdate},
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The claim whose holder a state names, and which claims its writer knew of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fact {
    pub claim: Option<usize>,
    pub told: u128,
}

/// A set with this claim in it.
pub fn bit(claim: Option<usize>) -> u128 {
    claim.map_or(0, |it| 1 << it)
}

#[derive(Debug)]
pub struct Server {
    pub lease: Option<LeaseRecord>,
    pub version: u64,
    pub uids: u64,
    /// How often a backup was restored.
    pub eras: u64,
    pub past: Vec<Option<LeaseRecord>>,
    pub facts: HashMap<u64, Fact>,
    name: LeaseName,
}

impl Server {
    pub fn new() -> Self {
        let name = LeaseName::new("default", "lease").expect("a name");
        let (past, facts) = (vec![], HashMap::new());
        Self { lease: None, version: 0, uids: 0, eras: 0, past, facts, name }
    }

    /// Whether a write over `seen` swaps the present state.
    pub fn accepts(&self, seen: Option<&LeaseRecord>) -> bool {
        let names = |it: &LeaseRecord| (it.uid().to_owned(), it.resource_version().to_owned());
        self.lease.as_ref().map(names) == seen.map(names)
    }

    /// What this write makes of the lease.
    pub fn written(&mut self, seen: Option<&LeaseRecord>, update: &LeaseUpdate) -> Value {
        let Some(seen) = seen else {
            let mut object = update.new_lease(&self.name);
            object["metadata"]["uid"] = self.next_uid().into();
            return object;
        };
        seen.with(update).into_json()
    }

    pub fn next_uid(&mut self) -> String {
        self.uids += 1;
        format!("u{}", self.uids)
    }

    /// Stores this state. Versions are never used twice, but go back with a restored backup.
    pub fn put(&mut self, object: Option<Value>, fact: Fact) -> Option<LeaseRecord> {
        self.version += 100;
        self.facts.insert(self.version, fact);
        self.lease = object.map(|it| at_version(it, self.version));
        self.past.push(self.lease.clone());
        self.lease.clone()
    }

    /// What the judge knows of the present state.
    pub fn fact(&self) -> Fact {
        self.lease.as_ref().map_or(Fact::default(), |it| self.facts[&version(it)])
    }
}

pub fn version(record: &LeaseRecord) -> u64 {
    record.resource_version().parse().expect("a number")
}

pub fn at_version(mut object: Value, version: u64) -> LeaseRecord {
    object["metadata"]["resourceVersion"] = version.to_string().into();
    LeaseRecord::from_json(object).expect("a lease")
}

/// What a webhook makes of a lease: it removes the annotations, or changes the duration.
pub fn altered(mut object: Value, strips: bool) -> Value {
    if strips {
        unannotated(&mut object);
    } else {
        let seconds = object["spec"]["leaseDurationSeconds"].as_u64().unwrap_or(0);
        object["spec"]["leaseDurationSeconds"] = json!(seconds + 1);
    }
    object
}

pub fn unannotated(object: &mut Value) {
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|name, _| ![CLAIM, WAITS_FOR, ASKED].contains(&name.as_str()));
    }
}
