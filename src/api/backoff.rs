//! The pause after several failures in a row.

use std::time::Duration;

/// The pause after `failures + 1` failures in a row. It doubles each time up to `longest`, and half of it is random.
pub(crate) fn backoff(first: Duration, failures: u32, longest: Duration) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(longest);
    full.mul_f64(0.5 + 0.5 * fastrand::f64())
}
