//! Conditions with a bound.

use std::time::Duration;

/// For what takes milliseconds on an idle machine.
pub const SOON: Duration = Duration::from_secs(20);

/// Waits for what must come within `bound`.
pub async fn within<T>(bound: Duration, what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(bound, future).await.unwrap_or_else(|_| panic!("not within {bound:?}: {what}"))
}

/// Waits until `condition` holds.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    within(SOON, what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}
