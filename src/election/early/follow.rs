//! Watches the pod of the holder. Errors never end the election: then the lease runs out as without early takeover.

use super::{holder_pod::HolderPod, proof::has_ended, settings::EarlyTakeover, succession::Ended};
use crate::{
    api::{self, CallError, Change, Complaint, Failure, LONGEST_PAUSE, Lines, backoff},
    leadership::Leadership,
    lease::{LeaseName, LeaseRecord, LeaseTiming},
};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use http::{Method, StatusCode};
use kube_client::Client;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

/// Reports the end of the holder's process.
pub(in crate::election) struct HolderWatch {
    /// The lease, while another candidate holds it and has said in which pod it runs.
    followed: watch::Sender<Option<LeaseRecord>>,
    news: BoxStream<'static, Ended>,
}

struct State {
    client: Client,
    /// The path of the pods.
    pods: String,
    timing: LeaseTiming,
    leadership: Leadership,
    followed: watch::Receiver<Option<LeaseRecord>>,
    pod: Option<Pod>,
    /// The version of the lease whose end was reported.
    reported: Option<Ended>,
    complaint: Complaint,
    /// How many calls in a row have failed.
    failures: u32,
    not_before: Instant,
}

/// The pod that is watched.
struct Pod {
    name: String,
    lines: Option<Lines>,
    /// As last shown. None if it is not known, or is gone.
    seen: Option<Value>,
}

// === impl HolderWatch ===

impl HolderWatch {
    /// Follows no pod if `early` is none.
    pub(in crate::election) fn new(
        early: Option<&EarlyTakeover>,
        lease: &LeaseName,
        timing: LeaseTiming,
        leadership: Leadership,
    ) -> Self {
        let (followed, receiver) = watch::channel(None);
        let Some(early) = early else { return Self { followed, news: stream::pending().boxed() } };
        let namespace = early.namespace.as_deref().unwrap_or_else(|| lease.namespace());
        let state = State {
            client: early.client.clone(),
            pods: format!("/api/v1/namespaces/{namespace}/pods"),
            timing,
            leadership,
            followed: receiver,
            pod: None,
            reported: None,
            complaint: Complaint::new("the holder's pod cannot be watched; its end is not noticed early"),
            failures: 0,
            not_before: Instant::now(),
        };
        let news = stream::unfold(state, |mut state| async move { Some((state.next().await?, state)) });
        Self { followed, news: news.boxed() }
    }

    /// Follows the pod of the holder of `record`. None if no other candidate holds the lease.
    pub(in crate::election) fn follow(&self, record: Option<&LeaseRecord>) {
        let record = record.filter(|record| HolderPod::of(record).is_some());
        self.followed.send_if_modified(|followed| {
            let is_news = followed.as_ref() != record;
            if is_news {
                *followed = record.cloned();
            }
            is_news
        });
    }

    /// The next end of a holder's process. Cancel-safe.
    pub(in crate::election) async fn next(&mut self) -> Option<Ended> {
        self.news.next().await
    }
}

// === impl State ===

impl State {
    async fn next(&mut self) -> Option<Ended> {
        loop {
            let record = self.followed.borrow_and_update().clone();
            let Some((record, holder)) = record.and_then(|it| HolderPod::of(&it).map(|pod| (it, pod))) else {
                self.pod = None;
                self.followed.changed().await.ok()?;
                continue;
            };
            if self.pod.as_ref().is_none_or(|pod| pod.name != holder.name) {
                self.pod = Some(Pod { name: holder.name, lines: None, seen: None });
            }
            let mut followed = self.followed.clone();
            tokio::select! {
                biased;
                changed = followed.changed() => changed.ok()?,
                ended = self.look(&record) => return Some(ended),
            }
        }
    }

    /// Waits until the pod proves that the process which wrote `record` has ended. Cancel-safe.
    async fn look(&mut self, record: &LeaseRecord) -> Ended {
        loop {
            sleep_until(self.not_before).await;
            let shown = self.pod.as_ref().and_then(|pod| pod.seen.as_ref());
            let proves = shown.is_some_and(|pod| has_ended(record, pod).is_ok());
            let outcome = if proves && !self.reported.as_ref().is_some_and(|it| it.is_of(record)) {
                self.confirm(record).await
            } else {
                self.listen(record).await.map(|()| None)
            };
            match outcome {
                Ok(Some(ended)) => return ended,
                Ok(None) => {}
                Err(error) => self.failed(&error),
            }
        }
    }

    /// Reads the pod anew, since the watch may lag. The lease was read before.
    async fn confirm(&mut self, record: &LeaseRecord) -> Result<Option<Ended>, CallError> {
        let Some(pod) = &mut self.pod else { return Ok(None) };
        let path = format!("{}/{}", self.pods, pod.name);
        let patience = self.timing.call_timeout();
        let read = timeout(patience, api::call(&self.client, Method::GET, path, None)).await;
        match read.unwrap_or_else(|_| Err(CallError::timeout(patience))) {
            Ok(read) => {
                let ended = has_ended(record, &read).is_ok().then(|| Ended::of(record));
                pod.seen = Some(read);
                self.reported.clone_from(&ended);
                Ok(ended)
            }
            Err(error) if error.failure == Failure::Status(StatusCode::NOT_FOUND) => {
                // That it is gone proves nothing.
                pod.seen = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes in the next line of the watch. Begins a watch if there is none.
    async fn listen(&mut self, record: &LeaseRecord) -> Result<(), CallError> {
        let Some(pod) = &mut self.pod else { return Ok(()) };
        let Some(lines) = &mut pod.lines else {
            let patience = self.timing.call_timeout();
            pod.lines = Some(api::watch_one(&self.client, &self.pods, &pod.name, patience).await?);
            return Ok(());
        };
        let Some(line) = lines.next().await else {
            pod.lines = None;
            // A server that ends each watch at once is asked in pauses.
            self.not_before = Instant::now() + self.timing.pause();
            return Ok(());
        };
        let Some((change, shown)) = api::change(&line?)? else { return Ok(()) };
        pod.seen = (change == Change::Seen).then_some(shown);
        self.failures = 0;
        self.complaint.settle(self.leadership.now());
        if let Some(Err(reason)) = pod.seen.as_ref().map(|pod| has_ended(record, pod)) {
            tracing::debug!(pod = pod.name, "no early takeover: {reason}");
        }
        Ok(())
    }

    fn failed(&mut self, error: &CallError) {
        if let Some(pod) = &mut self.pod {
            pod.lines = None;
        }
        let forbidden = error.failure == Failure::Status(StatusCode::FORBIDDEN);
        let advice = if forbidden { "; grant it get and watch on pods, by a Role" } else { "" };
        let details = format_args!("{error}{advice}");
        self.complaint.raise(error.failure.as_str(), &details, self.leadership.now());
        self.not_before = Instant::now() + backoff(self.timing.pause(), self.failures, LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
    }
}
