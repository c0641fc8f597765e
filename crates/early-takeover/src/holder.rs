//! What a holder writes about its pod into the lease, and what a follower reads of it.

use jiff::Timestamp;
use kube_leader_gate::{
    extension::{holder_pod_uid, is_subdomain},
    lease::LeaseRecord,
};
use serde_json::{Value, json};

/// The annotation which says in which pod the holder of this term runs. The claim says the uid of that pod.
pub(crate) const HOLDER_POD: &str = "kube-leader-gate/holder-pod";

/// The annotation which says whom the holder waits for behind its shut gate: `{}` if for none.
pub(crate) const WAITS_FOR: &str = "kube-leader-gate/waits-for";

/// A longer duration makes no sense.
const LONGEST_SANE_SECONDS: u64 = 24 * 60 * 60;

/// Where one process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HolderPod {
    pub(crate) name: String,
    /// The container of the process. None if any container of the pod may be the one.
    pub(crate) container: Option<String>,
}

/// The holder of one version of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pod: HolderPod,
    /// Binds the name to one pod, and so to one node and its clock. The claim of the holder says it.
    pub(crate) uid: String,
    /// The latest time that it wrote. It stamps each time before it sends the write.
    pub(crate) wrote: Timestamp,
}

// === impl HolderPod ===

impl HolderPod {
    /// The annotation of `holder` in its term.
    pub(crate) fn annotation(&self, holder: &str, term: u64) -> String {
        let mut said = json!({ "holder": holder, "term": term, "pod": self.name });
        if let Some(container) = &self.container {
            said["container"] = container.as_str().into();
        }
        said.to_string()
    }

    /// The pod of the present holder. None if the holder has not said it, or if an earlier holder has: an elector that
    /// does not know the annotation leaves it in the lease.
    fn read(said: &str, record: &LeaseRecord) -> Option<Self> {
        let said: Value = serde_json::from_str(said).ok()?;
        let of_this_term = said["holder"].as_str() == Some(record.holder()?)
            && said["term"].as_u64() == Some(record.transitions());
        let text = |key: &str| said[key].as_str().map(str::to_owned);
        let container = match &said["container"] {
            Value::Null => None,
            name => Some(name.as_str()?.to_owned()),
        };
        let pod = Self { name: text("pod")?, container };
        (of_this_term && is_subdomain(&pod.name)).then_some(pod)
    }
}

// === impl Holder ===

impl Holder {
    /// The holder of `record`. The error says why no end of it can be proven.
    pub(crate) fn of(record: &LeaseRecord) -> Result<Self, &'static str> {
        let lease = record.clone().into_json();
        let (annotations, spec) = (&lease["metadata"]["annotations"], &lease["spec"]);
        let pod = annotations[HOLDER_POD].as_str().and_then(|said| HolderPod::read(said, record));
        let silent = "the holder has not said in which pod it runs";
        let pod = pod.ok_or(silent)?;
        if annotations[WAITS_FOR] != "{}" {
            // The one that it waits for may live.
            return Err("the holder itself still waits for the writes of a former holder");
        }
        let duration = spec["leaseDurationSeconds"].as_u64().unwrap_or(0);
        let transitions = &spec["leaseTransitions"];
        let counts = transitions.is_null() || transitions.as_u64().is_some();
        if !counts || !(1..=LONGEST_SANE_SECONDS).contains(&duration) {
            return Err("the lease makes no sense");
        }
        let time = |key: &str| spec[key].as_str()?.parse::<Timestamp>().ok();
        // If the clock of the node was set back since the holder acquired the lease, that time is the later one.
        let wrote =
            time("acquireTime").zip(time("renewTime")).map(|(acquired, renewed)| acquired.max(renewed));
        let wrote = wrote.ok_or("the lease has no times")?;
        Ok(Self { pod, uid: holder_pod_uid(record).ok_or(silent)?, wrote })
    }
}
