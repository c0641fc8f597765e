//! A `LeaseCandidate` object. It keeps all fields, and trusts none of them.

use crate::settings::Versions;
use jiff::{SignedDuration, Timestamp};
use kube_leader_gate::{Identity, lease::LeaseName};
use serde_json::{Map, Value, json};

/// The first second of the year 0.
const YEAR_0: i64 = -62_167_219_200;

/// What this candidate's object should say.
#[derive(Clone, Debug)]
pub(crate) struct CandidateSpec {
    pub(crate) identity: Identity,
    pub(crate) lease: LeaseName,
    pub(crate) versions: Versions,
}

/// A `LeaseCandidate` as the API server sent it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CandidateRecord(Value);

/// Writes `time` as a `MicroTime`.
fn micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

// === impl CandidateSpec ===

impl CandidateSpec {
    /// The path of the objects in the lease's namespace.
    pub(crate) fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1beta1/namespaces/{}/leasecandidates", self.lease.namespace())
    }

    pub(crate) fn object(&self) -> String {
        format!("{}/{}", self.collection(), self.identity)
    }

    /// The object to create at `now`.
    pub(crate) fn created(&self, now: Timestamp) -> Value {
        let mut spec = self.spec();
        spec.insert("leaseName".into(), self.lease.name().into());
        spec.insert("renewTime".into(), micro(now).into());
        json!({
            "apiVersion": "coordination.k8s.io/v1beta1",
            "kind": "LeaseCandidate",
            "metadata": { "namespace": self.lease.namespace(), "name": self.identity.as_str() },
            "spec": spec,
        })
    }

    /// The object to write over `seen` at `now`: renewed, and with this candidate's versions.
    ///
    /// The coordinator compares `renewTime` with its own `pingTime`. So the answer to a ping counts from the ping, and
    /// a difference between the two clocks does not matter.
    pub(crate) fn renewed(&self, seen: &CandidateRecord, now: Timestamp) -> Value {
        let after = |ping: Timestamp| ping.checked_add(SignedDuration::from_micros(1)).unwrap_or(ping);
        let renewed = match (seen.unanswered_ping(), seen.time("pingTime")) {
            (Some(ping), _) => after(ping),
            // This candidate's clock may be behind. A renewal must not take an answer back.
            (None, Some(answered)) => now.max(after(answered)),
            (None, None) => now,
        };
        let mut object = seen.0.clone();
        if !object["spec"].is_object() {
            object["spec"] = json!({});
        }
        for (field, value) in self.spec() {
            object["spec"][field] = value;
        }
        object["spec"]["renewTime"] = micro(renewed).into();
        object
    }

    /// Whether `seen` says what this candidate would write, apart from the times.
    pub(crate) fn agrees_with(&self, seen: &CandidateRecord) -> bool {
        self.spec().iter().all(|(field, value)| seen.0["spec"].get(field) == Some(value))
    }

    /// Another lease that `seen` is for.
    pub(crate) fn other_lease<'a>(&self, seen: &'a CandidateRecord) -> Option<&'a str> {
        seen.0["spec"]["leaseName"].as_str().filter(|name| *name != self.lease.name())
    }

    fn spec(&self) -> Map<String, Value> {
        let own = &self.versions;
        Map::from_iter([
            ("binaryVersion".into(), own.binary_version().into()),
            ("emulationVersion".into(), own.emulation_version().into()),
            ("strategy".into(), own.strategy_name().into()),
        ])
    }
}

// === impl CandidateRecord ===

impl CandidateRecord {
    /// Reads the API server's JSON. None if it is not an object with a uid and a resource version.
    pub(crate) fn from_json(object: Value) -> Option<Self> {
        let record = Self(object);
        let named = !record.uid().is_empty() && !record.metadata("resourceVersion").is_empty();
        named.then_some(record)
    }

    pub(crate) fn name(&self) -> &str {
        self.metadata("name")
    }

    pub(crate) fn uid(&self) -> &str {
        self.metadata("uid")
    }

    /// Whether this is the lower of two versions that can be compared.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        let version = |it: &Self| it.metadata("resourceVersion").parse::<u64>().ok();
        version(self).zip(version(other)).is_some_and(|(own, other)| own < other)
    }

    /// The coordinator's ping, if this candidate has not renewed the object since.
    pub(crate) fn unanswered_ping(&self) -> Option<Timestamp> {
        let ping = self.time("pingTime")?;
        self.time("renewTime").is_none_or(|renewed| renewed < ping).then_some(ping)
    }

    /// A time, in whole microseconds as in a `MicroTime`. If it had smaller parts, no answer to the last possible ping would
    /// be later than it.
    fn time(&self, field: &str) -> Option<Timestamp> {
        let time: Timestamp = self.0["spec"][field].as_str()?.parse().ok()?;
        // No `MicroTime` is before the year 0: this crate could not write the answer to such a ping.
        let nanos = time.subsec_nanosecond() / 1_000 * 1_000;
        Timestamp::new(time.as_second(), nanos).ok().filter(|time| time.as_second() >= YEAR_0)
    }

    fn metadata(&self, key: &str) -> &str {
        self.0["metadata"][key].as_str().unwrap_or_default()
    }
}
