//! The judge: reads from the write log which candidate held a Lease when, and which wrote without it.

mod history;
pub(crate) mod log;
pub(crate) mod verdict;

use crate::judge::history::History;
use crate::judge::log::{LogTime, WriteRecord};
use crate::judge::verdict::Verdict;

/// Judges a write log by one Lease.
///
/// The judge reads the server's log alone, and trusts no client. A user, that is a bearer token, names a candidate. A
/// holder identity that equals a candidate's user names that candidate too.
///
/// - An **acquisition** is a write on the Lease that took effect and begins a term. It names a holder, and before it
///   there was another holder, no holder, no Lease, or the same holder with other `leaseTransitions`.
/// - A write by candidate X **overlaps** if the server received it after another candidate's acquisition took effect,
///   and X has not acquired the Lease since.
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
    /// Creates a judge for the Lease `namespace/name` and these candidates.
    ///
    /// If another user writes on the Lease, that can begin or end a term. The judge ignores other users' writes
    /// on other objects.
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

    /// Judges the whole log of one server.
    ///
    /// Dry runs and refused writes do not count. A `deletecollection` that deletes the Lease does not count
    /// either.
    #[must_use]
    pub fn verdict(&self, log: &[WriteRecord]) -> Verdict {
        // A write on the Lease counts from its effect, any other write from its arrival.
        let mut events: Vec<(LogTime, &WriteRecord)> = log
            .iter()
            .filter(|it| it.took_effect())
            .filter_map(|it| {
                let moment = if self.is_lease(it) { it.completed? } else { it.received };
                Some((moment, it))
            })
            .collect();
        events.sort_by_key(|(moment, _)| *moment);
        for place in 1..events.len() {
            self.correct(&mut events[..=place]);
        }
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

    /// Moves the last event, a write on the Lease, before those that took effect after it by the version that they stored.
    ///
    /// A real server may record an effect late, after that of a write that it let in later. An effect is between arrival
    /// and record, so two writes that the server did not have at the same time keep their places, whatever their versions:
    /// a restored backup sets these back.
    fn correct(&self, events: &mut [(LogTime, &WriteRecord)]) {
        let Some((&mut (_, last), earlier)) = events.split_last_mut() else { return };
        let version = |it: &WriteRecord| it.lease.as_ref().map(|lease| lease.resource_version);
        let Some(own) = version(last).filter(|_| self.is_lease(last)) else { return };
        let lease_writes = earlier.iter().enumerate().rev().filter(|(_, (_, it))| self.is_lease(it));
        let concurrent = lease_writes.take_while(|(_, (moment, _))| *moment > last.received);
        // A deletion has no version.
        let versions = concurrent.filter_map(|(place, (_, it))| Some((place, version(it)?)));
        if let Some((place, _)) = versions.take_while(|(_, version)| *version > own).last() {
            events[place..].rotate_right(1);
            events[place].0 = events[place + 1].0;
        }
    }

    fn is_lease(&self, record: &WriteRecord) -> bool {
        record.group == "coordination.k8s.io"
            && record.resource == "leases"
            && record.namespace.as_deref() == Some(&self.namespace)
            && record.name.as_deref() == Some(&self.name)
    }
}
