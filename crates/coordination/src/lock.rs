//! The lock of a coordinated election: it shows the lease as `view` says, and writes what the election may write.

use crate::{shown::Show, status::LockStatus, view::View};
use futures_util::{StreamExt, stream, stream::BoxStream};
use kube_leader_gate::{
    Candidate,
    leadership::Term,
    lease::{BoxLock, ErrLock, ErrLockKind, LeaseEvent, LeaseRecord, LeaseUpdate, Lock},
};
use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};

pub(crate) struct CoordinatedLock {
    inner: BoxLock,
    shared: Arc<Shared>,
    contends: watch::Receiver<bool>,
    /// Whether the coordinator may choose this candidate.
    listed: watch::Receiver<bool>,
}

/// What the calls and the watch share.
struct Shared {
    view: Mutex<View>,
    candidate: Candidate,
    sight: watch::Sender<LockStatus>,
    /// A call has changed the view, so the watch may have to show something.
    changed: Notify,
    /// The last term that was asked to give way.
    asked: Mutex<Option<Term>>,
}

type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

// === impl CoordinatedLock ===

impl CoordinatedLock {
    pub(crate) fn new(
        inner: BoxLock,
        candidate: Candidate,
        contends: watch::Receiver<bool>,
        sight: watch::Sender<LockStatus>,
        listed: watch::Receiver<bool>,
    ) -> Self {
        let view = View::new(candidate.identity().as_str(), candidate.lease(), &candidate.timing());
        let (view, changed, asked) = (Mutex::new(view), Notify::new(), Mutex::default());
        let shared = Arc::new(Shared { view, candidate, sight, changed, asked });
        Self { inner, shared, contends, listed }
    }

    /// Waits until the coordinator can no longer choose this candidate, but not for long: the lease matters more.
    async fn withdrawn(&self) {
        let mut listed = self.listed.clone();
        let patience = self.shared.candidate.timing().call_timeout() / 2;
        let _ = timeout(patience, listed.wait_for(|listed| !listed)).await;
    }
}

impl Lock for CoordinatedLock {
    type Events = Events;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        let before = self.shared.view().seen.version();
        let read = self.inner.get().await?;
        let now = Instant::now();
        let answer = {
            let mut view = self.shared.view();
            view.seen.read(read, before.as_deref(), now);
            view.answer(now)
        };
        self.shared.tell();
        Ok(answer)
    }

    /// Only the coordinator creates the lease. An election that sees it through this layer does not ask for this, but for
    /// the moment of a deletion.
    async fn create(&self, _: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        Err(ErrLock::new(ErrLockKind::Conflict, "the coordinator alone creates the lease"))
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let mut claim = claim.clone();
        let over = self.shared.view().over(seen, &claim.holder, &mut claim.annotations)?;
        // Otherwise the coordinator might name this process once more.
        if claim.holder.is_empty() && !*self.contends.borrow() {
            self.withdrawn().await;
        }
        let written = self.inner.update(&over, &claim).await?;
        self.shared.view().written(&written, Instant::now());
        self.shared.tell();
        Ok(written)
    }

    async fn watch(&self) -> Result<Events, ErrLock> {
        let following = (self.inner.watch().await?, self.shared.clone());
        Ok(stream::unfold(following, |(mut events, shared)| async move {
            let event = shared.next(&mut events).await?;
            Some((event, (events, shared)))
        })
        .boxed())
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.inner.reconnect()
    }
}

// === impl Shared ===

impl Shared {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next event for the election. Cancel-safe.
    async fn next(&self, events: &mut Events) -> Option<Result<LeaseEvent, ErrLock>> {
        loop {
            let now = Instant::now();
            let (show, changes_at) = {
                let mut view = self.view();
                (view.step(now), view.seen.changes_at(now))
            };
            match show {
                Some(Show::Seen(record)) => return Some(Ok(LeaseEvent::Seen(record))),
                Some(Show::Gone(last)) => return Some(Ok(LeaseEvent::Deleted(last))),
                None => {}
            }
            let elapsed = async {
                match changes_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            let event = tokio::select! {
                biased;
                event = events.next() => event?,
                () = self.changed.notified() => continue,
                () = elapsed => continue,
            };
            let now = Instant::now();
            match event {
                Ok(LeaseEvent::Seen(record)) => {
                    self.view().seen.take_in(record, now);
                }
                Ok(LeaseEvent::Deleted(last)) => self.view().seen.deleted(last, now),
                other => return Some(other),
            }
            self.tell();
        }
    }

    /// Acts on a view that has changed.
    fn tell(&self) {
        let view = self.view();
        let sight = view.seen.sight();
        self.sight.send_if_modified(|told| std::mem::replace(told, sight) != sight);
        self.changed.notify_one();
        let Some(preferred) = view.seen.preferred() else { return };
        // The election has not opened its gate yet; the next renewal shows the same.
        let Some(term) = self.candidate.term() else { return };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.as_ref() != Some(&term) {
            tracing::info!(preferred, "the coordinator prefers another candidate");
            *asked = Some(term);
        }
        self.candidate.give_way();
    }
}
