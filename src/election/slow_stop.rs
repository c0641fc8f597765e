//! What the log says of a stop that takes long.

use super::candidate::Candidate;
use crate::leadership::{Intent, Leadership};
use std::time::Duration;

/// When the log says what a stop still waits for. By default, Kubernetes kills a process 30 s after it has asked it to end.
const LONG: Duration = Duration::from_secs(20);

/// Waits until a stop that begins now has taken long, and then says what it waits for. A stop takes at most `longest`.
pub(super) async fn watch(candidate: Candidate, longest: Duration) {
    let leadership = candidate.leadership();
    leadership.sleep_until(leadership.now().saturating_add(LONG)).await;
    let Some(what) = awaited(leadership, candidate.timing().safety_margin()) else { return };
    let needed = whole_seconds(longest);
    tracing::warn!(
        needed,
        "this stop takes long: after {LONG:?} it waits for {what}; if Kubernetes kills the process before the stop is over, the \
         lease stays held until its end: give the pod a terminationGracePeriodSeconds of at least {needed}, and more if the pod \
         has a preStop hook"
    );
}

/// Rounds up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// What a stop waits for before it can release the lease. None if this process has no lease to release.
fn awaited(leadership: &Leadership, margin: Duration) -> Option<String> {
    match leadership.intent() {
        Intent::Contend | Intent::Keep if leadership.can_write() => Some("the workload to end".to_owned()),
        Intent::Contend | Intent::Keep if leadership.is_leader() => {
            let writes = leadership.writes_under_way();
            Some(format!("admitted writes to finish ({writes} under way)"))
        }
        Intent::Leave => {
            let left = leadership.settles_at(margin).saturating_since(leadership.now());
            Some(if left.is_zero() {
                "the API server to confirm the release".to_owned()
            } else {
                format!(
                    "a write that ended without an answer, and may still take effect for {}s",
                    whole_seconds(left)
                )
            })
        }
        _ => None,
    }
}
