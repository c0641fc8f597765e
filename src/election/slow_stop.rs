//! What the log says of a stop that takes long.

use super::candidate::Candidate;
use crate::leadership::Intent;
use std::time::Duration;

/// When the log says what a stop still waits for. By default, Kubernetes kills a process 30 s after it has asked it to end.
const LONG: Duration = Duration::from_secs(20);

/// Waits until a stop that begins now has taken long, and then says what it waits for. A stop takes at most `longest`.
pub(super) async fn watch(candidate: Candidate, longest: Duration) {
    let leadership = candidate.leadership();
    leadership.sleep_until(leadership.now().saturating_add(LONG)).await;
    let Some(what) = awaited(&candidate) else { return };
    let needed = whole_seconds(longest);
    tracing::warn!(
        needed,
        "this stop takes long: after {LONG:?} it waits for {what}; if Kubernetes kills the process before the stop is over, the \
         process does not release the lease: give the pod a terminationGracePeriodSeconds of at least {needed}, and more if the pod \
         has a preStop hook"
    );
}

/// Rounds up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

/// What a stop waits for before it can release the lease. None if the lease does not name this process.
fn awaited(candidate: &Candidate) -> Option<String> {
    let leadership = candidate.leadership();
    if candidate.holder().as_deref() != Some(candidate.identity().as_str()) {
        return None;
    }
    let left = leadership.settles_at(candidate.timing().safety_margin()).saturating_since(leadership.now());
    match (leadership.intent(), leadership.writes_under_way()) {
        (Intent::Contend | Intent::Keep, writes) if writes > 0 && !leadership.can_write() => {
            Some(format!("admitted writes to finish ({writes} under way)"))
        }
        (Intent::Contend | Intent::Keep, _) => Some("the workload to end".to_owned()),
        (Intent::Leave, _) if left.is_zero() => Some("the API server to confirm the release".to_owned()),
        (Intent::Leave, _) => Some(format!(
            "a write that ended without an answer, and may still take effect for {}s",
            whole_seconds(left)
        )),
        _ => None,
    }
}
