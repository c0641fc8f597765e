//! Waits for conditions, with a bound, in tokio's time.

use std::time::Duration;
use tokio::time::Instant;

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

/// How often [`once_within`] plays a scene.
const TRIES: usize = 5;

/// Plays `scene` until the time that it returns is less than `bound`. Panics if that is never so.
///
/// This is for what must not wait for something that takes longer than `bound`. Such a wait comes each time, and a
/// delay by a busy machine does not.
pub async fn once_within(bound: Duration, what: &str, mut scene: impl AsyncFnMut() -> Duration) {
    for _ in 0..TRIES {
        if scene().await < bound {
            return;
        }
    }
    panic!("never within {bound:?}: {what}");
}

/// How long `future` takes, and its output.
pub async fn timed<T>(future: impl Future<Output = T>) -> (Duration, T) {
    let began = Instant::now();
    let output = future.await;
    (began.elapsed(), output)
}
