//! The lock that shows a lease as free if the process of its holder has ended.

use crate::{
    ended::Ended,
    follow::{Follower, Watched},
    holder::{HOLDER_POD, HolderPod},
    pods::Pods,
    settings::{EarlyTakeover, ErrInvalidEarlyTakeover},
};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube_leader_gate::{
    extension::{LockContext, LockLayer},
    lease::{BoxLock, ErrLock, LeaseEvent, LeaseRecord, LeaseUpdate, Lock},
};
use std::{
    fmt,
    sync::{Mutex, PoisonError},
};
use tokio::sync::watch;
use tracing::Instrument;

/// The lock of an election with [`EarlyTakeover`], which makes it.
///
/// - `get` and `watch` show a version of the lease as released if the process that wrote it has ended and its writes have
///   settled. They show each other version as it is.
/// - An `update` over such a version swaps the lease as it is.
/// - A claim that names this candidate says in which pod it runs.
pub struct EarlyTakeoverLock {
    inner: BoxLock,
    identity: String,
    own: HolderPod,
    newest: watch::Sender<Option<LeaseRecord>>,
    ended: watch::Receiver<Option<Ended>>,
    /// It begins with the first look at the lease: the election runs then, and so does its runtime.
    follower: Mutex<Option<Follower>>,
}

// === impl EarlyTakeover ===

impl LockLayer for EarlyTakeover {
    type Lock = EarlyTakeoverLock;
    type Error = ErrInvalidEarlyTakeover;

    fn layer(
        self,
        inner: BoxLock,
        context: &LockContext,
    ) -> Result<EarlyTakeoverLock, ErrInvalidEarlyTakeover> {
        self.validate(context)?;
        Ok(EarlyTakeoverLock::new(inner, context, self))
    }
}

// === impl EarlyTakeoverLock ===

impl EarlyTakeoverLock {
    fn new(inner: BoxLock, context: &LockContext, settings: EarlyTakeover) -> Self {
        let candidate = context.candidate();
        let (identity, timing) = (candidate.identity().to_string(), candidate.timing());
        let (newest, seen) = watch::channel(None);
        let (tell, ended) = watch::channel(None);
        let namespace = settings.namespace.as_deref().unwrap_or_else(|| candidate.lease().namespace());
        let follower = Follower {
            pods: Pods::new(settings.client, namespace, timing.call_timeout()),
            identity: identity.clone(),
            timing,
            settle: settings.settle,
            newest: seen,
            ended: tell,
            trouble: context.trouble("the holder's pod cannot be watched; its end is not noticed early"),
            watched: Watched::nothing(&timing),
        };
        Self { inner, identity, own: settings.own, newest, ended, follower: Mutex::new(Some(follower)) }
    }

    fn begin(&self) {
        let follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(follower) = follower {
            tokio::spawn(follower.run().in_current_span());
        }
    }

    /// Takes in a state of the lease, unless it is older than the known one.
    pub(crate) fn note(newest: &watch::Sender<Option<LeaseRecord>>, news: Option<&LeaseRecord>) {
        let version = |record: &LeaseRecord| record.resource_version().parse::<u64>().ok();
        newest.send_if_modified(|known| {
            let is_old = known.as_ref().zip(news).is_some_and(|(known, news)| {
                known.uid() == news.uid()
                    && version(news).zip(version(known)).is_some_and(|(news, known)| news < known)
            });
            let is_news = known.as_ref() != news && !is_old;
            if is_news {
                *known = news.cloned();
            }
            is_news
        });
    }

    /// The claim, with what it says of this candidate's pod.
    fn signed(&self, claim: &LeaseUpdate) -> LeaseUpdate {
        let mut claim = claim.clone();
        let is_own = claim.holder == self.identity;
        // A claim may also name another holder, and change what this candidate says beside it.
        if is_own || claim.holder.is_empty() {
            let pod = is_own.then(|| self.own.annotation(&self.identity, claim.transitions));
            claim.annotations.insert(HOLDER_POD, pod);
        }
        claim
    }
}

impl Lock for EarlyTakeoverLock {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.begin();
        let read = self.inner.get().await?;
        Self::note(&self.newest, read.as_ref());
        Ok(read.map(|record| shown(record, &self.ended)))
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let created = self.inner.create(&self.signed(claim)).await?;
        Self::note(&self.newest, Some(&created));
        Ok(created)
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let real = self.ended.borrow().as_ref().and_then(|ended| ended.real(seen).cloned());
        let updated = self.inner.update(real.as_ref().unwrap_or(seen), &self.signed(claim)).await?;
        Self::note(&self.newest, Some(&updated));
        Ok(updated)
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        self.begin();
        let events = self.inner.watch().await?;
        let state = Watching { events, newest: self.newest.clone(), ended: self.ended.clone(), last: None };
        let next = |mut state: Watching| async move { Some((state.next().await?, state)) };
        Ok(stream::unfold(state, next).boxed())
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.inner.reconnect()
    }
}

impl fmt::Debug for EarlyTakeoverLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EarlyTakeoverLock")
            .field("inner", &self.inner)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

/// The record as the election shall see it.
fn shown(record: LeaseRecord, ended: &watch::Receiver<Option<Ended>>) -> LeaseRecord {
    match &*ended.borrow() {
        Some(ended) if ended.is_of(&record) => ended.shown().clone(),
        _ => record,
    }
}

/// A watch of the lease, with the ends of holders in between.
struct Watching {
    events: <BoxLock as Lock>::Events,
    newest: watch::Sender<Option<LeaseRecord>>,
    ended: watch::Receiver<Option<Ended>>,
    /// The lease as this watch last showed it.
    last: Option<LeaseRecord>,
}

impl Watching {
    async fn next(&mut self) -> Option<Result<LeaseEvent, ErrLock>> {
        loop {
            tokio::select! {
                biased;
                event = self.events.next() => {
                    let event = event?;
                    if let Ok(LeaseEvent::Seen(record)) = event {
                        EarlyTakeoverLock::note(&self.newest, Some(&record));
                        let record = shown(record, &self.ended);
                        self.last = Some(record.clone());
                        return Some(Ok(LeaseEvent::Seen(record)));
                    }
                    if matches!(event, Ok(LeaseEvent::Deleted(_))) {
                        EarlyTakeoverLock::note(&self.newest, None);
                    }
                    self.last = None;
                    return Some(event);
                }
                Ok(()) = self.ended.changed() => {
                    let Some(last) = self.last.clone() else { continue };
                    let record = shown(last.clone(), &self.ended);
                    if record != last {
                        self.last = Some(record.clone());
                        return Some(Ok(LeaseEvent::Seen(record)));
                    }
                }
            }
        }
    }
}
