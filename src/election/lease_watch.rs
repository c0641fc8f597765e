//! Follows the lease by watch for ever. If the watch ends, it connects again.

use crate::{
    growing_pause::GrowingPause,
    lease::{ErrLock, LeaseEvent, LeaseName, LeaseTiming, Lock},
};
use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// If a watch has lasted this long, the next one may begin at once.
const STEADY: Duration = Duration::from_secs(10);
/// If a watch has lasted this long, watches work. An open watch is not yet a working one: some servers accept it and
/// fail at the first event.
pub(super) const WORKS: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub enum WatchNews {
    /// The watch has begun. Earlier events are unknown, so what is known of the lease may be old.
    Up,
    Event(LeaseEvent),
    /// The watch has ended, with or without an error. The stream begins another one.
    Down(Option<ErrLock>),
}

/// An endless stream. Dropping it ends the watch. `next` is cancel-safe.
pub(super) type LeaseWatch = BoxStream<'static, WatchNews>;

/// Follows `lease` with one watch of `lock` after another.
pub(super) fn watch_lease<L: Lock>(lock: Arc<L>, lease: LeaseName, timing: LeaseTiming) -> LeaseWatch {
    let pauses = GrowingPause::of_watches(timing.pause());
    // `last` is when the last watch began, or failed to begin.
    let watches = stream::unfold((None::<Instant>, pauses), move |(last, mut pauses)| {
        let (lock, lease) = (lock.clone(), lease.clone());
        async move {
            match last {
                Some(began) if began.elapsed() < STEADY => sleep(pauses.after_failure()).await,
                _ => pauses.reset(),
            }
            let patience = timing.call_timeout();
            let watch = timeout(patience, lock.watch()).await;
            let news = match watch.unwrap_or_else(|_| Err(ErrLock::timeout(patience))) {
                Ok(events) => {
                    // One early end is normal, as when the API server restarts.
                    let patient = !pauses.has_failed();
                    let begun = Instant::now();
                    let news = until_down(events, lease).map(move |news| match news {
                        WatchNews::Down(None) if !patient && begun.elapsed() < STEADY => {
                            WatchNews::Down(Some(ended_early()))
                        }
                        news => news,
                    });
                    stream::iter([WatchNews::Up]).chain(news).left_stream()
                }
                Err(error) => stream::iter([WatchNews::Down(Some(error))]).right_stream(),
            };
            Some((news, (Some(Instant::now()), pauses)))
        }
    });
    watches.flatten().boxed()
}

/// The API server, or a device on the way, ends watch after watch.
fn ended_early() -> ErrLock {
    ErrLock::cut_off(format!("the watch has ended within {STEADY:?}, as the one before"))
}

/// Yields the events of `lease` until the watch fails or ends. The last item says so, and by then the watch is dropped.
fn until_down<E>(events: E, lease: LeaseName) -> impl Stream<Item = WatchNews>
where
    E: Stream<Item = Result<LeaseEvent, ErrLock>> + Unpin,
{
    let own = move |event| match event {
        LeaseEvent::Seen(record) => record.of(&lease).map(LeaseEvent::Seen),
        LeaseEvent::Deleted(record) => record.of(&lease).map(LeaseEvent::Deleted),
    };
    let events = events.map(move |event| event.and_then(&own));
    stream::unfold(Some(events), |events| async {
        let mut events = events?;
        Some(match events.next().await {
            Some(Ok(event)) => (WatchNews::Event(event), Some(events)),
            ended => (WatchNews::Down(ended.and_then(Result::err)), None),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_watch_ends_with_its_first_error() {
        let error = Err(ErrLock::cut_off("as the test has it"));
        let hangs = stream::iter([error]).chain(stream::pending());
        let lease = LeaseName::new("default", "operator").unwrap();
        let news: Vec<_> = until_down(hangs, lease).collect().now_or_never().expect("an end");
        assert!(matches!(&news[..], [WatchNews::Down(Some(_))]));
    }
}
