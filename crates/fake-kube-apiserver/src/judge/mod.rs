//! The judge: from the write log, who held a Lease when, and who wrote without holding it.

mod history;
pub(crate) mod log;
pub(crate) mod verdict;

use crate::judge::history::History;
use crate::judge::log::{LogTime, WriteRecord};
use crate::judge::verdict::Verdict;

/// Judges a write log by one Lease.
///
/// Only the server's own log counts, so no client can talk it round. A candidate is known by its user, the
/// bearer token; an identity that is a candidate's user is that candidate too.
///
/// - An **acquisition** is a write of the Lease that took effect and names a holder where there was another,
///   none, no Lease, or the same with other `leaseTransitions`.
/// - A write by X **overlaps** when it was received after another candidate's acquisition had taken effect,
///   and X has not acquired again since.
///
/// ```
/// use fake_kube_apiserver::{ApiServer, Judge};
/// use serde_json::json;
///
/// let server = ApiServer::new();
/// let lease = |holder: &str| json!({ "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15 } });
/// let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/demo";
/// server.put("a", path, lease("a")).unwrap();
/// server.put("b", path, lease("b")).unwrap();
/// server.put("a", "/api/v1/namespaces/default/configmaps/x", json!({})).unwrap();
///
/// let verdict = Judge::new("default", "demo", ["a", "b"]).verdict(&server.write_log());
/// assert_eq!(verdict.terms.len(), 2);
/// assert_eq!(verdict.overlaps().count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Judge {
    namespace: String,
    name: String,
    candidates: Vec<String>,
}

// === impl Judge ===

impl Judge {
    /// A judge for the Lease `namespace/name`, over these candidates. Other users' writes on the Lease count
    /// as what they do to the candidates' terms; their other writes do not count.
    #[must_use]
    pub fn new<S: Into<String>>(
        namespace: impl Into<String>,
        name: impl Into<String>,
        candidates: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            candidates: candidates.into_iter().map(Into::into).collect(),
        }
    }

    /// Reads the log of one server from its beginning. Dry runs and refused writes do not count; nor does a
    /// deletion of the Lease by `deletecollection`.
    #[must_use]
    pub fn verdict(&self, log: &[WriteRecord]) -> Verdict {
        // A write on the Lease counts when it takes effect, any other when it arrives.
        let mut events: Vec<(LogTime, &WriteRecord)> = log
            .iter()
            .filter(|it| it.took_effect())
            .filter_map(|it| {
                let moment = if self.is_lease(it) { it.completed? } else { it.received };
                Some((moment, it))
            })
            .collect();
        events.sort_by_key(|(moment, _)| *moment);
        let mut history = History::new(&self.candidates);
        for (moment, record) in events {
            if self.is_lease(record) {
                history.lease_written(moment, record);
            } else if self.candidates.contains(&record.user) {
                history.written(record);
            }
        }
        history.verdict
    }

    fn is_lease(&self, record: &WriteRecord) -> bool {
        record.group == "coordination.k8s.io"
            && record.resource == "leases"
            && record.namespace.as_deref() == Some(&self.namespace)
            && record.name.as_deref() == Some(&self.name)
    }
}
