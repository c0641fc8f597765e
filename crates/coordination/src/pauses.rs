//! The times of the calls about the `LeaseCandidate`. They follow from the election's own.

use kube_leader_gate::LeaseTiming;
use std::time::Duration;

const LONGEST_FIRST: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    /// How long one call may take.
    pub(crate) call_timeout: Duration,
    /// The pause after the first failure.
    pub(crate) first: Duration,
    /// The longest pause after several.
    pub(crate) longest: Duration,
}

impl Pauses {
    pub(crate) fn of(timing: &LeaseTiming) -> Self {
        let longest = timing.retry_period();
        Self { call_timeout: timing.call_timeout(), first: LONGEST_FIRST.min(longest / 4), longest }
    }
}
