//! The lock of a coordinated election: it shows the lease as `view` says, and writes what the election may write.

use crate::{status::LockStatus, view::View};
use futures_util::{StreamExt, stream::BoxStream};
use kube_leader_gate::{
    election::LockContext,
    leadership::Term,
    lease::{BoxLock, ErrLock, ErrLockKind, LeaseEvent, LeaseRecord, LeaseUpdate, Lock},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
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
    context: LockContext,
    status: watch::Sender<LockStatus>,
    /// The candidate that the coordinator prefers to this one, as last told to people.
    preferred: Mutex<Option<String>>,
}

// === impl CoordinatedLock ===

impl CoordinatedLock {
    pub(crate) fn new(
        inner: BoxLock,
        context: LockContext,
        status: watch::Sender<LockStatus>,
        listed: watch::Receiver<bool>,
    ) -> Self {
        let contends = context.contends();
        let view = Mutex::new(View::new(context.candidate().identity().as_str(), Instant::now()));
        context.may_acquire(false);
        let shared = Arc::new(Shared { view, context, status, preferred: Mutex::default() });
        Self { inner, shared, contends, listed }
    }

    /// Waits until the coordinator can no longer choose this candidate, but not for long: the lease matters more.
    async fn withdrawn(&self) {
        let mut listed = self.listed.clone();
        let patience = self.shared.context.candidate().timing().call_timeout() / 2;
        let _ = timeout(patience, listed.wait_for(|listed| !listed)).await;
    }
}

impl Lock for CoordinatedLock {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        let before = self.shared.view().version();
        let read = self.inner.get().await?;
        let shown = {
            let mut view = self.shared.view();
            view.read(read.as_ref(), before.as_deref(), Instant::now());
            read.map(|record| view.shown(&record))
        };
        self.shared.tell();
        Ok(shown)
    }

    /// Only the coordinator creates the lease. An election that may not acquire it does not ask for this.
    async fn create(&self, _: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        Err(ErrLock::new(ErrLockKind::Conflict, "the coordinator alone creates the lease"))
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let over = self.shared.view().over(seen, &claim.holder)?;
        // Otherwise the coordinator might name this process once more.
        if claim.holder.is_empty() && !*self.contends.borrow() {
            self.withdrawn().await;
        }
        let written = self.inner.update(&over, claim).await?;
        self.shared.view().take_in(&written, Instant::now());
        self.shared.tell();
        // The gate does not open first: the lease names this candidate, and the coordinator prefers another one already.
        let is_renewal = seen.holder() == Some(&*claim.holder) && seen.transitions() == claim.transitions;
        if !is_renewal && let Some(preferred) = self.shared.view().preferred() {
            let term = Term::new(written.uid(), written.transitions());
            self.shared.context.candidate().give_way_in(&term);
            let message = format!("the coordinator prefers {preferred:?}");
            return Err(ErrLock::new(ErrLockKind::Withheld, message));
        }
        Ok(written)
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        let shared = self.shared.clone();
        let events = self.inner.watch().await?.map(move |event| Ok(shared.watched(event?)));
        Ok(events.boxed())
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

    /// Takes in news of the watch, and returns them as the election shall see them.
    fn watched(&self, event: LeaseEvent) -> LeaseEvent {
        let now = Instant::now();
        let shown = {
            let mut view = self.view();
            match event {
                LeaseEvent::Seen(record) => {
                    view.take_in(&record, now);
                    LeaseEvent::Seen(view.shown(&record))
                }
                LeaseEvent::Deleted(last) => {
                    let shown = view.shown(&last);
                    view.deleted(&last, now);
                    LeaseEvent::Deleted(shown)
                }
                // There is no other event.
                other => other,
            }
        };
        self.tell();
        shown
    }

    /// Tells the election and the keeper of the `LeaseCandidate` what the lease says.
    fn tell(&self) {
        let view = self.view();
        self.context.may_acquire(view.is_named());
        let status = view.status();
        self.status.send_if_modified(|told| std::mem::replace(told, status) != status);
        let preferred = view.preferred();
        let mut told = self.preferred.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != preferred {
            if let Some(preferred) = &preferred {
                tracing::info!(preferred, "the coordinator prefers another candidate");
            }
            *told = preferred;
        }
    }
}
