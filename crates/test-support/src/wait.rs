//! Waits for conditions, with a bound, in tokio's time.

use std::time::Duration;

/// Waits for `future`, and panics when that takes longer than `bound`.
pub async fn within<T>(bound: Duration, what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(bound, future).await.unwrap_or_else(|_| panic!("not within {bound:?}: {what}"))
}

/// Waits until `condition` holds. Checks every millisecond.
pub async fn until(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    within(bound, what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Waits until `condition`, which asks a server, holds. Checks after each of `pauses`.
pub async fn until_told(
    bound: Duration,
    pauses: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) {
    within(bound, what, async {
        while !condition().await {
            tokio::time::sleep(pauses).await;
        }
    })
    .await;
}
