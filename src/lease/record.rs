//! The lease object. It keeps all fields, and trusts none of them.

use super::name::LeaseName;
use crate::{defect, leadership::Term};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, error::Error, fmt, sync::Arc, time::Duration};

/// A Lease as the API server sent it. An update keeps every field that the election does not own
/// ([rule S12](crate::guide::guarantees#s12-foreign-fields-survive)).
///
/// A field that makes no sense counts as missing: a duration that is missing, negative or not a number, or a count
/// below zero. A clone shares the object, and costs next to nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseRecord {
    object: Arc<Map<String, Value>>,
}

/// What a candidate writes into the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The new holder. Empty releases the lease.
    pub holder: String,
    /// Whole seconds, at least 1.
    pub duration_seconds: u64,
    /// When the holder acquired the lease, by its wall clock. A claim is recognised by it.
    pub acquire_time: String,
    /// When the holder renewed the lease, by its wall clock. Each renewal has another one.
    pub renew_time: String,
    /// How often the lease has changed its holder.
    pub transitions: u64,
    /// The annotations to write, by name. None removes an annotation. All others stay as they are.
    pub annotations: BTreeMap<&'static str, Option<String>>,
}

/// A longer duration makes no sense.
pub(crate) const LONGEST_SANE: Duration = Duration::from_secs(24 * 60 * 60);

/// The answer is not a lease: it is not an object with a uid and a resource version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrNotALease(());

// === impl LeaseRecord ===

impl LeaseRecord {
    /// Reads the API server's JSON.
    ///
    /// # Errors
    /// [`ErrNotALease`] if it is not an object with a uid and a resource version.
    pub fn from_json(value: Value) -> Result<Self, ErrNotALease> {
        let Value::Object(object) = value else {
            return Err(ErrNotALease(()));
        };
        let record = Self { object: object.into() };
        if record.uid().is_empty() || record.resource_version().is_empty() {
            return Err(ErrNotALease(()));
        }
        Ok(record)
    }

    /// The object to send to the API server.
    #[must_use]
    pub fn into_json(self) -> Value {
        Value::Object(Arc::unwrap_or_clone(self.object))
    }

    /// The namespace of the object.
    pub(crate) fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// The name of the object.
    pub(crate) fn name(&self) -> &str {
        self.metadata("name")
    }

    /// The uid of the object. If a lease is deleted and created again, its uid is new.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata("uid")
    }

    /// The version that an update swaps.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.metadata("resourceVersion")
    }

    /// The version as a number. Versions of one resource are comparable (KEP-5504), and with etcd they always were.
    /// None if the server uses other versions.
    pub(crate) fn version(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// Whether this is the lower of two versions that can be compared.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        if defect::is_back("compares-versions-as-text") {
            return self.resource_version() < other.resource_version();
        }
        matches!((self.version(), other.version()), (Some(own), Some(other)) if own < other)
    }

    /// The holder. None if the lease is free.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.text("holderIdentity").filter(|holder| !holder.is_empty())
    }

    /// How long the holder has the lease after each renewal. None if the field makes no sense.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let seconds = self.field("leaseDurationSeconds")?.as_u64()?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// The duration, if no typing error made it.
    pub(crate) fn sane_duration(&self) -> Option<Duration> {
        self.duration().filter(|duration| *duration <= LONGEST_SANE)
    }

    /// Whether the last holder has released the lease, as client-go, this crate and others do. If a user empties the holder
    /// by hand, its times stay.
    pub(crate) fn is_released(&self) -> bool {
        let short = self.duration() <= Some(Duration::from_secs(1));
        self.holder().is_none() && (short || self.renew_time().is_none())
    }

    /// How often the lease has changed its holder. 0 if the field makes no sense.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.field("leaseTransitions").and_then(Value::as_u64).unwrap_or(0)
    }

    /// When the holder acquired the lease, by its own account.
    pub(crate) fn acquire_time(&self) -> Option<&str> {
        self.text("acquireTime")
    }

    /// When the holder renewed the lease, by its own account.
    pub(crate) fn renew_time(&self) -> Option<&str> {
        self.text("renewTime")
    }

    /// The candidate to which the holder should give the lease, by a coordinated election.
    pub(crate) fn preferred_holder(&self) -> Option<&str> {
        self.text("preferredHolder").filter(|preferred| !preferred.is_empty())
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&Value> {
        self.object.get("metadata")?.get("annotations")?.get(name)
    }

    /// The term that the record names.
    pub(crate) fn term(&self) -> Term {
        Term::new(self.uid(), self.transitions())
    }

    /// Whether `other` is the same object with the same spec. Labels and other metadata may differ.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.uid() == other.uid() && self.object.get("spec") == other.object.get("spec")
    }

    /// What is wrong with a lease that has a holder, in words for the log.
    pub(crate) fn oddity(&self) -> Option<&'static str> {
        let holder = self.field("holderIdentity");
        if holder.is_some_and(|holder| !holder.is_string() && !holder.is_null()) {
            return Some("the holder is not text; the lease counts as free");
        }
        self.holder()?;
        match self.duration() {
            None => {
                return Some("the duration is missing or not a positive number; this candidate uses its own");
            }
            Some(duration) if duration > LONGEST_SANE => {
                return Some("the duration is longer than a day; it is respected");
            }
            Some(_) => {}
        }
        let transitions = self.field("leaseTransitions");
        if transitions.is_some_and(|count| !count.is_null() && count.as_u64().is_none()) {
            return Some("the transitions are not a count; they are read as 0");
        }
        None
    }

    /// The claim that changes nothing but these annotations. None if there is no holder, or if the lease makes no sense:
    /// then the claim would change more, and other candidates would take it for a renewal.
    pub(crate) fn annotated(&self, annotations: BTreeMap<&'static str, Option<String>>) -> Option<Claim> {
        let claim = Claim {
            holder: self.holder()?.to_owned(),
            duration_seconds: self.duration()?.as_secs(),
            acquire_time: self.acquire_time()?.to_owned(),
            renew_time: self.renew_time()?.to_owned(),
            transitions: self.transitions(),
            annotations,
        };
        self.with(&claim).says_the_same(self).then_some(claim)
    }

    /// The object with `claim` in it. All other fields stay.
    #[must_use]
    pub fn with(&self, claim: &Claim) -> Self {
        let mut object = Map::clone(&self.object);
        // If the spec is not an object, it has no fields to keep.
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
        Self { object: object.into() }
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
    /// The object that creates `lease` with this claim, for the API server: without uid and resource version.
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
                    // If the annotations are not an object, there are none to keep.
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
        f.write_str("the answer is not a Lease with a uid and a resource version")
    }
}

impl Error for ErrNotALease {}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
