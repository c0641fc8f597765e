//! What a holder writes about its pod into the lease.

use crate::lease::{LeaseRecord, is_subdomain};
use serde_json::{Value, json};

/// The annotation which says in which pod the holder of this term runs.
pub(in crate::election) const HOLDER_POD: &str = "kube-leader-gate/holder-pod";

/// The pod of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HolderPod {
    pub(super) name: String,
    /// Binds the name to one pod, and so to one node and its clock.
    pub(super) uid: String,
    /// The container of the process. None if any container of the pod may be the one.
    pub(super) container: Option<String>,
}

impl HolderPod {
    /// The pod of the present holder. None if the holder has not said it, or if an earlier holder has: an elector that
    /// does not know the annotation leaves it in the lease.
    pub(super) fn of(record: &LeaseRecord) -> Option<Self> {
        let said: Value = serde_json::from_str(record.annotation(HOLDER_POD)?.as_str()?).ok()?;
        let of_this_term = said["holder"].as_str() == Some(record.holder()?)
            && said["term"].as_u64() == Some(record.transitions());
        let text = |key: &str| said[key].as_str().map(str::to_owned);
        let container = match &said["container"] {
            Value::Null => None,
            name => Some(name.as_str()?.to_owned()),
        };
        let pod = Self { name: text("pod")?, uid: text("uid")?, container };
        (of_this_term && is_subdomain(&pod.name) && is_uid(&pod.uid)).then_some(pod)
    }

    /// The annotation of `holder` in its term.
    pub(super) fn annotation(&self, holder: &str, term: u64) -> String {
        let mut said = json!({ "holder": holder, "term": term, "pod": self.name, "uid": self.uid });
        if let Some(container) = &self.container {
            said["container"] = container.as_str().into();
        }
        said.to_string()
    }
}

pub(super) fn is_uid(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
