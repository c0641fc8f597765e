//! The lease object: kept whole, read with suspicion.

use super::name::LeaseName;
use crate::leadership::Term;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, error::Error, fmt, time::Duration};

/// A Lease as the API server gave it. Everything in it that an election does not own comes back from every update as it
/// was (rule S12).
///
/// Fields that make no sense are read as absent: a duration that is missing, negative or no number, or a count below zero.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseRecord {
    object: Map<String, Value>,
}

/// What a candidate writes into the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The new holder; empty gives the lease up.
    pub holder: String,
    /// Whole seconds, at least 1.
    pub duration_seconds: u64,
    /// When the holder acquired it; a wall clock's time, for people.
    pub acquire_time: String,
    /// When the holder renewed it; a wall clock's time, for people.
    pub renew_time: String,
    /// How often the lease has changed hands.
    pub transitions: u64,
    /// Annotations to write, and those to remove (none), by name. All others stay as they are.
    pub annotations: BTreeMap<&'static str, Option<String>>,
}

/// An answer that is no lease: no object, or one without uid and resource version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrNotALease(());

// === impl LeaseRecord ===

impl LeaseRecord {
    /// Reads what an API server sent.
    ///
    /// # Errors
    /// [`ErrNotALease`] when it is no object with a uid and a resource version.
    pub fn from_json(value: Value) -> Result<Self, ErrNotALease> {
        let Value::Object(object) = value else {
            return Err(ErrNotALease(()));
        };
        let record = Self { object };
        if record.uid().is_empty() || record.resource_version().is_empty() {
            return Err(ErrNotALease(()));
        }
        Ok(record)
    }

    /// The object, as it goes to the API server.
    #[must_use]
    pub fn into_json(self) -> Value {
        Value::Object(self.object)
    }

    /// The namespace of the object.
    pub(crate) fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// The name of the object.
    pub(crate) fn name(&self) -> &str {
        self.metadata("name")
    }

    /// The uid of the object: a lease that was deleted and made again has another.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata("uid")
    }

    /// The version that an update swaps on.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.metadata("resourceVersion")
    }

    /// The version as a number: versions of one resource are comparable (KEP-5504), and always were with etcd. None for a
    /// server that has them otherwise.
    pub(crate) fn version(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// Whether this is the lower of two versions that can be compared.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        matches!((self.version(), other.version()), (Some(own), Some(other)) if own < other)
    }

    /// The holder; none when the lease was given up.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.text("holderIdentity").filter(|holder| !holder.is_empty())
    }

    /// For how long the holder holds it from each renewal; none when the field makes no sense.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let seconds = self.field("leaseDurationSeconds")?.as_u64()?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// How often the lease has changed hands; 0 when the field makes no sense.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.field("leaseTransitions").and_then(Value::as_u64).unwrap_or(0)
    }

    /// When the holder says that it acquired the lease.
    pub(crate) fn acquire_time(&self) -> Option<&str> {
        self.text("acquireTime")
    }

    /// When the holder says that it renewed it.
    pub(crate) fn renew_time(&self) -> Option<&str> {
        self.text("renewTime")
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&Value> {
        self.object.get("metadata")?.get("annotations")?.get(name)
    }

    /// The term that the record speaks of.
    pub(crate) fn term(&self) -> Term {
        Term::new(self.uid(), self.transitions())
    }

    /// Whether `other` says the same of the election: the same object with the same spec. Labels and the like may differ.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.uid() == other.uid() && self.object.get("spec") == other.object.get("spec")
    }

    /// What is wrong with a lease that has a holder, in words for a log.
    pub(crate) fn oddity(&self) -> Option<&'static str> {
        const HUGE: u64 = 24 * 60 * 60;
        let holder = self.field("holderIdentity");
        if holder.is_some_and(|holder| !holder.is_string() && !holder.is_null()) {
            return Some("the holder is no text; the lease is read as free");
        }
        self.holder()?;
        match self.duration() {
            None => {
                return Some("the duration is missing or no positive number; this candidate's own is used");
            }
            Some(duration) if duration.as_secs() > HUGE => {
                return Some("the duration is longer than a day; it is respected");
            }
            Some(_) => {}
        }
        let transitions = self.field("leaseTransitions");
        if transitions.is_some_and(|count| !count.is_null() && count.as_u64().is_none()) {
            return Some("the transitions are no count; they are read as 0");
        }
        None
    }

    /// The object with `claim` in it, and all else as it was.
    #[must_use]
    pub fn with(&self, claim: &Claim) -> Self {
        let mut object = self.object.clone();
        // A spec that is no object holds nothing to keep.
        let spec = object.entry("spec").or_insert_with(|| json!({}));
        if !spec.is_object() {
            *spec = json!({});
        }
        if let Value::Object(spec) = spec {
            claim.write_into(spec);
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            claim.annotate(metadata);
        }
        Self { object }
    }

    fn metadata(&self, key: &str) -> &str {
        self.object
            .get("metadata")
            .and_then(|metadata| metadata.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn field(&self, key: &str) -> Option<&Value> {
        self.object.get("spec")?.get(key)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.field(key)?.as_str()
    }
}

// === impl Claim ===

impl Claim {
    /// The object that creates `lease` with this claim in it, as it goes to the API server: without uid and resource version.
    #[must_use]
    pub fn new_lease(&self, lease: &LeaseName) -> Value {
        let mut spec = Map::new();
        self.write_into(&mut spec);
        let mut metadata = Map::from_iter([
            ("namespace".into(), json!(lease.namespace())),
            ("name".into(), json!(lease.name())),
        ]);
        self.annotate(&mut metadata);
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        })
    }

    fn annotate(&self, metadata: &mut Map<String, Value>) {
        for (name, value) in &self.annotations {
            match value {
                Some(value) => {
                    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
                    // Annotations that are no object hold nothing to keep.
                    if !annotations.is_object() {
                        *annotations = json!({});
                    }
                    annotations[*name] = json!(value);
                }
                None => {
                    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
                    {
                        annotations.remove(*name);
                    }
                }
            }
        }
    }

    fn write_into(&self, spec: &mut Map<String, Value>) {
        spec.insert("holderIdentity".into(), json!(self.holder));
        spec.insert("leaseDurationSeconds".into(), json!(self.duration_seconds));
        spec.insert("acquireTime".into(), json!(self.acquire_time));
        spec.insert("renewTime".into(), json!(self.renew_time));
        spec.insert("leaseTransitions".into(), json!(self.transitions));
    }
}

// === impl ErrNotALease ===

impl fmt::Display for ErrNotALease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is no Lease with a uid and a resource version")
    }
}

impl Error for ErrNotALease {}
