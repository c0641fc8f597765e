//! Watches the pod of the holder. Errors end nothing: then the lease runs out as without early takeover.

use crate::{
    ended::Ended,
    holder::{Holder, HolderPod},
    pods::{Events, Pods, ROLE},
    proof,
};
use futures_util::StreamExt;
use jiff::Timestamp;
use kube_leader_gate::{
    extension::{GrowingPause, Trouble},
    kube_client::{Error, core::WatchEvent},
    lease::{ErrLock, LeaseRecord, LeaseTiming},
};
use serde_json::Value;
use std::{convert::Infallible, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// If a watch has lasted this long, watches work.
const STEADY: Duration = Duration::from_secs(10);

/// Tells which version of the lease was written by a process that has ended, and whose writes have settled.
pub(crate) struct Follower {
    pub(crate) pods: Pods,
    /// The holder of this name is this process.
    pub(crate) identity: String,
    pub(crate) timing: LeaseTiming,
    pub(crate) settle: Duration,
    /// The newest state of the lease. Its end ends this task.
    pub(crate) newest: watch::Receiver<Option<LeaseRecord>>,
    pub(crate) ended: watch::Sender<Option<Ended>>,
    pub(crate) trouble: Trouble,
    pub(crate) watched: Watched,
}

/// The pod that is watched, and how that goes.
pub(crate) struct Watched {
    pod: Option<Pod>,
    /// When the present watch began.
    begun: Instant,
    end: Option<End>,
    /// It grows with each call and each short watch that fails.
    pauses: GrowingPause,
    not_before: Instant,
}

struct Pod {
    name: String,
    events: Option<Events>,
    /// As last shown. None if it is not known, or is gone.
    seen: Option<Value>,
}

/// An end of a process, and when this process first saw it.
struct End {
    /// The pod, and its uid.
    of: (HolderPod, String),
    at: Timestamp,
    seen: Instant,
}

// === impl Follower ===

impl Follower {
    /// Runs until there is no lock that could show what it finds.
    pub(crate) async fn run(mut self) {
        while self.follow().await.is_some() {}
    }

    /// Follows the holder in one state of the lease, until there is another. None at the end.
    async fn follow(&mut self) -> Option<()> {
        let record = self.newest.borrow_and_update().clone();
        let mut newest = self.newest.clone();
        let followed = record.and_then(|record| self.holder_of(&record).map(|holder| (record, holder)));
        let Some((record, holder)) = followed else {
            self.rest();
            return newest.changed().await.ok();
        };
        if self.watched.pod.as_ref().is_none_or(|pod| pod.name != holder.pod.name) {
            self.watched.pod = Some(Pod { name: holder.pod.name.clone(), events: None, seen: None });
        }
        tokio::select! {
            biased;
            changed = newest.changed() => changed.ok(),
            never = self.look(&record, &holder) => match never {},
        }
    }

    /// The holder, if it is another candidate whose end can be proven.
    fn holder_of(&self, record: &LeaseRecord) -> Option<Holder> {
        if record.holder()? == self.identity {
            return None;
        }
        let holder = Holder::of(record);
        holder.inspect_err(|reason| tracing::debug!("no early takeover: {reason}")).ok()
    }

    /// Looks at no pod, since no other candidate leads that has said where it runs.
    fn rest(&mut self) {
        self.watched.pod = None;
        self.worked();
    }

    /// Looks at the pod of `holder`, which wrote `record`, for its end. Cancel-safe.
    async fn look(&mut self, record: &LeaseRecord, holder: &Holder) -> Infallible {
        loop {
            sleep_until(self.watched.not_before).await;
            let is_known = self.ended.borrow().as_ref().is_some_and(|ended| ended.is_of(record));
            let settled = self.settles(holder).filter(|_| !is_known);
            let outcome = match settled {
                Some(at) if at <= Instant::now() => self.confirm(record, holder).await,
                Some(at) => tokio::select! {
                    heard = self.listen(holder) => heard,
                    () = sleep_until(at) => Ok(()),
                },
                None => self.listen(holder).await,
            };
            if let Err(error) = outcome {
                self.failed(&error);
            }
        }
    }

    /// When the writes of `holder` have settled, if the watch shows its end.
    fn settles(&mut self, holder: &Holder) -> Option<Instant> {
        let pod = self.watched.pod.as_ref()?.seen.as_ref()?;
        let at = proof::end(holder, pod).ok()?;
        // The version of the lease may change meanwhile, by an edit or a late renewal. The end is the same.
        let of = (holder.pod.clone(), holder.uid.clone());
        let known = self.watched.end.take().filter(|end| end.of == of && end.at == at);
        let end = known.unwrap_or_else(|| End { of, at, seen: Instant::now() });
        Some(self.watched.end.insert(end).seen + self.settle)
    }

    /// Reads the pod anew, since the watch may lag. If the end is still the same, the lease is shown as free.
    async fn confirm(&mut self, record: &LeaseRecord, holder: &Holder) -> Result<(), ErrLock> {
        let (Some(pod), Some(end)) = (&mut self.watched.pod, &self.watched.end) else { return Ok(()) };
        // That it is gone proves nothing.
        pod.seen = self.pods.get(&pod.name).await?;
        let proven = pod.seen.as_ref().is_some_and(|pod| proof::end(holder, pod) == Ok(end.at));
        if let Some(ended) = Ended::of(record, end.at).filter(|_| proven) {
            tracing::info!(
                holder = record.holder(),
                "the holder's container has ended; its lease counts as free"
            );
            self.ended.send_replace(Some(ended));
        }
        Ok(())
    }

    /// Takes in the next event of the watch. Begins a watch if there is none. Cancel-safe.
    async fn listen(&mut self, holder: &Holder) -> Result<(), ErrLock> {
        let Some(pod) = &mut self.watched.pod else { return Ok(()) };
        let Some(events) = &mut pod.events else {
            pod.events = Some(self.pods.watch(&pod.name).await?);
            self.watched.begun = Instant::now();
            return Ok(());
        };
        let event = tokio::select! {
            event = events.next() => event,
            // That it has shown the pod proves nothing: it may fail after that, each time.
            () = sleep_until(self.watched.begun + STEADY), if self.watched.pauses.has_failed() => {
                self.worked();
                return Ok(());
            }
        };
        pod.seen = match event {
            Some(Ok(WatchEvent::Added(shown) | WatchEvent::Modified(shown))) => Some(shown),
            Some(Ok(WatchEvent::Deleted(_))) => None,
            Some(Ok(WatchEvent::Bookmark(_))) => return Ok(()),
            Some(Ok(WatchEvent::Error(status))) => return Err(Error::Api(status).into()),
            Some(Err(error)) => return Err(error),
            None => {
                pod.events = None;
                // A server that ends each watch at once is asked in pauses.
                self.watched.not_before = Instant::now() + pause(&self.timing);
                return Ok(());
            }
        };
        if let Some(Err(reason)) = pod.seen.as_ref().map(|pod| proof::end(holder, pod)) {
            tracing::debug!(pod = pod.name, "no early takeover: {reason}");
        }
        Ok(())
    }

    fn worked(&mut self) {
        if self.watched.pauses.has_failed() {
            self.watched.pauses.reset();
            self.trouble.settle();
        }
    }

    fn failed(&mut self, error: &ErrLock) {
        if let Some(pod) = &mut self.watched.pod {
            pod.events = None;
        }
        self.trouble.raise(error.kind().as_str(), &error.explain(ROLE));
        self.watched.not_before = Instant::now() + self.watched.pauses.after_failure();
    }
}

impl Watched {
    pub(crate) fn nothing(timing: &LeaseTiming) -> Self {
        let pauses = GrowingPause::of_watches(pause(timing));
        Self { pod: None, begun: Instant::now(), end: None, pauses, not_before: Instant::now() }
    }
}

/// The pause after a failure, as that of the election.
pub(crate) fn pause(timing: &LeaseTiming) -> Duration {
    Duration::from_millis(500).min(timing.retry_period() / 4)
}
