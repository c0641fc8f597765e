//! Waiting for conditions with a common bound.

pub use crate::wait::{once_within, timed, within};

use std::time::Duration;

/// For conditions that take milliseconds on an idle machine, or as long as the sidecar waits for a caller. It closes what is
/// idle for a minute, and no test may take that for the end that it waits for.
pub const SOON: Duration = Duration::from_secs(40);

/// Waits until `condition` holds.
pub async fn until(what: &str, condition: impl FnMut() -> bool) {
    crate::wait::until(SOON, what, condition).await;
}

/// Waits until `look`, which asks a server, finds something.
pub async fn until_some<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    within(SOON, what, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
