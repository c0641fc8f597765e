//! Waiting for conditions with a common bound.

pub use crate::wait::within;

use std::time::Duration;

/// For conditions that take milliseconds on an idle machine.
pub const SOON: Duration = Duration::from_secs(20);

/// Waits until `condition` holds.
pub async fn until(what: &str, condition: impl FnMut() -> bool) {
    crate::wait::until(SOON, what, condition).await;
}
