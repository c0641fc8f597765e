//! What a candidate writes into the lease.

use super::name::LeaseName;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What a candidate writes into the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseUpdate {
    /// The new holder. An empty text releases the lease.
    pub holder: String,
    /// The lease duration in whole seconds, at least 1.
    pub duration_seconds: u64,
    /// When the holder acquired the lease, by its wall clock.
    pub acquire_time: String,
    /// When the holder renewed the lease, by its wall clock. Each renewal has another time, and candidates recognise a claim
    /// by it.
    pub renew_time: String,
    /// How often the lease has changed its holder.
    pub transitions: u64,
    /// The annotations to write, by name. None removes an annotation. All other annotations stay as they are.
    pub annotations: BTreeMap<&'static str, Option<String>>,
    /// More metadata for a Lease that does not exist yet: its labels and its owner. Only [`new_lease`](Self::new_lease) reads
    /// this field.
    pub new_metadata: Map<String, Value>,
}

impl LeaseUpdate {
    /// The object to send to the API server to create `lease` with this claim. It has no uid and no resource version.
    #[must_use]
    pub fn new_lease(&self, lease: &LeaseName) -> Value {
        let mut spec = Map::new();
        self.write_into(&mut spec);
        let mut metadata = Map::from_iter([
            ("namespace".into(), json!(lease.namespace())),
            ("name".into(), json!(lease.name())),
        ]);
        metadata.extend(self.new_metadata.clone());
        self.annotate(&mut metadata);
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec })
    }

    pub(super) fn annotate(&self, metadata: &mut Map<String, Value>) {
        for (name, value) in &self.annotations {
            let Some(value) = value else {
                let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
                annotations.map(|annotations| annotations.remove(*name));
                continue;
            };
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            // If the annotations are not an object, there are none to keep.
            if !annotations.is_object() {
                *annotations = json!({});
            }
            annotations[*name] = json!(value);
        }
    }

    pub(super) fn write_into(&self, spec: &mut Map<String, Value>) {
        spec.insert("holderIdentity".into(), json!(self.holder));
        spec.insert("leaseDurationSeconds".into(), json!(self.duration_seconds));
        spec.insert("acquireTime".into(), json!(self.acquire_time));
        spec.insert("renewTime".into(), json!(self.renew_time));
        spec.insert("leaseTransitions".into(), json!(self.transitions));
    }
}

/// Writes `time` as the API's `MicroTime`. It is for people and for other programs: no decision of this crate uses a wall
/// clock.
pub(crate) fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
