//! Builds an Event in the form of `events.k8s.io/v1`.
//!
//! The limits are those of Kubernetes' validation of that version (`pkg/apis/core/validation/events.go`).

use crate::{election::Candidate, leadership::Term};
use jiff::Timestamp;
use serde_json::{Value, json};

const LONGEST_NAME: usize = 253;
/// The limit of a qualified name.
const LONGEST_CONTROLLER: usize = 63;
const LONGEST_INSTANCE: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Gained,
    Lost,
}

/// The beginning or the end of a term.
#[derive(Clone, Debug)]
pub(super) struct Transition {
    change: Change,
    term: Term,
    at: Timestamp,
}

impl Transition {
    pub(super) fn now(change: Change, term: Term) -> Self {
        Self { change, term, at: Timestamp::now() }
    }

    /// The Event. It has a unique name, so sending it twice creates it once.
    pub(super) fn event(&self, candidate: &Candidate) -> Value {
        let (lease, identity) = (candidate.lease(), candidate.identity().as_str());
        let (action, words) = match self.change {
            Change::Gained => ("BecameLeader", "became leader"),
            Change::Lost => ("StoppedLeading", "stopped leading"),
        };
        let mut regarding = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": lease.namespace(),
            "name": lease.name(),
        });
        if !self.term.lease_uid().is_empty() {
            regarding["uid"] = self.term.lease_uid().into();
        }
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "namespace": lease.namespace(), "name": name(lease.name(), self.at) },
            "eventTime": self.at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            "type": "Normal",
            "reason": "LeaderElection",
            "action": action,
            "note": format!("{identity} {words}"),
            "regarding": regarding,
            // A lease usually has the name of its controller.
            "reportingController": head(lease.name(), LONGEST_CONTROLLER).trim_end_matches(['-', '.']),
            "reportingInstance": head(identity, LONGEST_INSTANCE),
        })
    }
}

/// A unique name: the lease's name, the time and a random part. A list by name is also sorted by time.
fn name(lease: &str, at: Timestamp) -> String {
    let unique = format!("{:016x}{:04x}", at.as_nanosecond(), fastrand::u16(..));
    let lease = head(lease, LONGEST_NAME - 1 - unique.len()).trim_end_matches(['-', '.']);
    format!("{lease}.{unique}")
}

/// The first bytes of `text`, up to a whole character.
fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_sort_by_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let long = format!("{}.{}", "a".repeat(231), "b".repeat(21));
        for lease in ["operator", &long] {
            let names = [1, 2_000_000_000, 4_000_000_000].map(|second| name(lease, at(second)));
            assert!(names.is_sorted(), "{names:?}");
            assert!(names.iter().all(|name| name.len() <= LONGEST_NAME && !name.contains("..")), "{names:?}");
        }
    }

    #[test]
    fn truncation_keeps_whole_characters() {
        assert_eq!(head("abc", 5), "abc");
        assert_eq!(head("aé", 2), "a");
    }
}
