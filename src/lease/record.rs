//! The lease object. It keeps all fields, and trusts none of them.

use super::{
    error::{ErrLock, ErrLockKind},
    name::LeaseName,
    update::LeaseUpdate,
};
use crate::leadership::Term;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A Lease as the API server sent it. An update keeps every field that the election does not own
/// ([rule S12](crate::guide::guarantees#s12-foreign-fields-survive)).
///
/// A field that makes no sense counts as missing, for example a duration that is not a positive number, or a count below
/// zero. Clones are cheap, because they share the object.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseRecord {
    object: Arc<Map<String, Value>>,
}

/// The longest duration that makes sense: a day.
pub(crate) const LONGEST_SANE: Duration = Duration::from_secs(24 * 60 * 60);

// === impl LeaseRecord ===

impl LeaseRecord {
    /// Reads the API server's JSON.
    ///
    /// # Errors
    /// [`BadAnswer`](ErrLockKind::BadAnswer) if `value` is not an object, if it has no uid or no resource version, or if
    /// the uid contains a space.
    pub fn from_json(value: Value) -> Result<Self, ErrLock> {
        let record =
            if let Value::Object(object) = value { Some(Self { object: object.into() }) } else { None };
        // A claim contains the uid as one of its words, so the uid must not contain a space.
        let is_word = |uid: &str| !uid.is_empty() && !uid.contains(char::is_whitespace);
        let named = record.filter(|record| is_word(record.uid()) && !record.resource_version().is_empty());
        let message = "the answer is not a Lease with a uid and a resource version";
        named.ok_or_else(|| ErrLock::new(ErrLockKind::BadAnswer, message))
    }

    /// Returns this record, if it is about the lease `own`.
    ///
    /// An answer about another lease is a bug of the lock or of the code below it. If the election accepted it, this process
    /// would lead in another lease's term, beside that lease's holder.
    ///
    /// # Errors
    /// [`BadAnswer`](ErrLockKind::BadAnswer) if the record is about another lease.
    pub(crate) fn of(self, own: &LeaseName) -> Result<Self, ErrLock> {
        let (namespace, name) = (self.namespace(), self.name());
        if namespace == own.namespace() && name == own.name() {
            return Ok(self);
        }
        let message = format!("the lock of the lease {own} answered with the lease {namespace}/{name}");
        Err(ErrLock::new(ErrLockKind::BadAnswer, message))
    }

    /// The object to send to the API server.
    #[must_use]
    pub fn into_json(self) -> Value {
        Value::Object(Arc::unwrap_or_clone(self.object))
    }

    /// The uid of the object. If a lease is deleted and created again, its uid is new.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata("uid")
    }

    /// The version of the object. An update replaces the lease only if this is still its version.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.metadata("resourceVersion")
    }

    /// The resource version as a number. A larger number is a newer version of the resource (KEP-5504); with etcd this was
    /// always so. None if the server's versions are not numbers.
    pub(crate) fn version(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// The holder. None if the lease is free.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.text("holderIdentity").filter(|holder| !holder.is_empty())
    }

    /// How often the lease has changed its holder. 0 if the field makes no sense.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.field("leaseTransitions").and_then(Value::as_u64).unwrap_or(0)
    }

    /// The annotation of this name.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<&Value> {
        self.object.get("metadata")?.get("annotations")?.get(name)
    }

    /// The object with `claim` in it. All other fields stay.
    #[must_use]
    pub fn with(&self, claim: &LeaseUpdate) -> Self {
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

/// What only the election reads of a lease.
#[doc(hidden)]
#[allow(clippy::must_use_candidate, clippy::missing_errors_doc, reason = "only `internal` shows it")]
impl LeaseRecord {
    /// The namespace of the object.
    pub fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.metadata("name")
    }

    /// How long the holder has the lease after each renewal. None if the field makes no sense.
    pub fn duration(&self) -> Option<Duration> {
        let seconds = self.field("leaseDurationSeconds")?.as_u64()?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// When the holder acquired the lease, as the holder wrote it.
    pub fn acquire_time(&self) -> Option<&str> {
        self.text("acquireTime")
    }

    /// When the holder renewed the lease, as the holder wrote it.
    pub fn renew_time(&self) -> Option<&str> {
        self.text("renewTime")
    }

    /// The term that the record names.
    pub fn term(&self) -> Term {
        Term::new(self.uid(), self.transitions())
    }

    /// Whether `other` is the same object with the same spec. Labels and other metadata may differ.
    pub fn has_spec_of(&self, other: &Self) -> bool {
        self.uid() == other.uid() && self.object.get("spec") == other.object.get("spec")
    }

    /// The first field of a held lease that makes no sense: a word for log fields, and a sentence. None if all fields make
    /// sense, or if the lease has no holder.
    pub fn oddity(&self) -> Option<(&'static str, &'static str)> {
        let holder = self.field("holderIdentity");
        if holder.is_some_and(|holder| !holder.is_string() && !holder.is_null()) {
            return Some((
                "holder",
                "the holder is not text; the lease is taken when its duration has passed",
            ));
        }
        self.holder()?;
        let Some(duration) = self.duration() else {
            let details = "the duration is missing or not a positive number; this candidate uses its own";
            return Some(("duration", details));
        };
        if duration > LONGEST_SANE {
            let details = "the duration is longer than a day, and is waited for; if the holder is gone, delete the lease \
                           and restart the replicas";
            return Some(("duration", details));
        }
        let transitions = self.field("leaseTransitions");
        let is_odd = transitions.is_some_and(|count| !count.is_null() && count.as_u64().is_none());
        is_odd.then_some(("transitions", "the transitions are not a count; they are read as 0"))
    }

    /// The update that changes only these annotations. None if the lease has no holder. None too if a field of the lease
    /// makes no sense: the update would then change that field as well, and other candidates would take it for a renewal.
    pub fn annotated(&self, annotations: BTreeMap<&'static str, Option<String>>) -> Option<LeaseUpdate> {
        let claim = LeaseUpdate {
            holder: self.holder()?.to_owned(),
            duration_seconds: self.duration()?.as_secs(),
            acquire_time: self.acquire_time()?.to_owned(),
            renew_time: self.renew_time()?.to_owned(),
            transitions: self.transitions(),
            annotations,
            new_metadata: Map::new(),
        };
        self.with(&claim).has_spec_of(self).then_some(claim)
    }

    /// Checks that the server has stored what `claim` writes. The error names the field that differs.
    pub fn holds(&self, claim: &LeaseUpdate) -> Result<(), &'static str> {
        fn text(field: &str) -> Option<&str> {
            Some(field).filter(|field| !field.is_empty())
        }
        let fields = [
            ("the holder", self.holder() == text(&claim.holder)),
            ("the duration", self.duration() == Some(Duration::from_secs(claim.duration_seconds))),
            ("the acquire time", self.acquire_time() == text(&claim.acquire_time)),
            ("the renew time", self.renew_time() == text(&claim.renew_time)),
            ("the transitions", self.transitions() == claim.transitions),
        ];
        let annotations = claim.annotations.iter().map(|(name, value)| {
            (
                *name,
                self.annotation(name).map(Value::as_str) == value.as_ref().map(|value| Some(value.as_str())),
            )
        });
        let differs = fields.into_iter().chain(annotations).find(|(_, is_same)| !is_same);
        differs.map_or(Ok(()), |(what, _)| Err(what))
    }
}

#[cfg(test)]
mod tests {
    //! What an answer must have to be a lease, and what is said of a lease that makes no sense.

    use super::*;

    fn held(spec: &Value) -> LeaseRecord {
        let mut spec = spec.clone();
        spec["holderIdentity"] = json!("other");
        LeaseRecord::from_json(json!({ "metadata": { "uid": "u", "resourceVersion": "1" }, "spec": spec }))
            .unwrap()
    }

    #[test]
    fn an_answer_without_uid_or_version_is_no_lease() {
        for metadata in [
            json!({}),
            json!({ "uid": "u" }),
            json!({ "resourceVersion": "1" }),
            json!({ "uid": "two words", "resourceVersion": "1" }),
        ] {
            let error = LeaseRecord::from_json(json!({ "metadata": metadata })).unwrap_err();
            assert_eq!(
                error.to_string(),
                "bad answer: the answer is not a Lease with a uid and a resource version"
            );
        }
    }

    #[test]
    fn each_oddity_of_a_held_lease_is_named() {
        for (spec, said) in [
            (json!({ "leaseDurationSeconds": 15 }), None),
            (json!({ "leaseDurationSeconds": 15, "leaseTransitions": null }), None),
            (json!({ "leaseDurationSeconds": 15, "leaseTransitions": 3 }), None),
            (
                json!({ "leaseDurationSeconds": 15, "leaseTransitions": -3 }),
                Some("the transitions are not a count"),
            ),
            (json!({ "leaseDurationSeconds": 86_400 }), None),
            (json!({ "leaseDurationSeconds": 86_401 }), Some("the duration is longer than a day")),
            (json!({}), Some("the duration is missing or not a positive number")),
        ] {
            let oddity = held(&spec).oddity();
            assert!(
                said.map_or(oddity.is_none(), |said| oddity.is_some_and(|oddity| oddity.1.starts_with(said))),
                "{spec}: {oddity:?}"
            );
        }
    }

    #[test]
    fn a_holder_that_is_no_text_is_odd_and_a_missing_one_is_not() {
        for (holder, odd) in [(json!(7), true), (json!(null), false), (json!(""), false)] {
            let metadata = json!({ "uid": "u", "resourceVersion": "1" });
            let lease = json!({ "metadata": metadata, "spec": { "holderIdentity": holder } });
            assert_eq!(LeaseRecord::from_json(lease).unwrap().oddity().is_some(), odd, "{holder}");
        }
    }
}
