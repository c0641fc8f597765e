//! A lock that accepts only answers about its own lease.

use super::{
    error::{ErrLock, ErrLockKind},
    lock::{LeaseEvent, Lock},
    name::LeaseName,
    record::{Claim, LeaseRecord},
};
use futures_util::{StreamExt, stream::BoxStream};

/// Wraps the lock of an election. It turns an answer about another lease into an error.
///
/// Such an answer is a bug of the lock or of the code below it. If the election accepted it, this process would lead
/// in another lease's term, beside that lease's holder.
#[derive(Debug)]
pub(crate) struct VettedLock<L> {
    inner: L,
    lease: LeaseName,
}

impl<L> VettedLock<L> {
    pub(crate) const fn new(inner: L, lease: LeaseName) -> Self {
        Self { inner, lease }
    }
}

impl<L: Lock> Lock for VettedLock<L> {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.inner.get().await?.map(|record| own(&self.lease, record)).transpose()
    }

    async fn create(&self, claim: &Claim) -> Result<LeaseRecord, ErrLock> {
        own(&self.lease, self.inner.create(claim).await?)
    }

    async fn update(&self, seen: &LeaseRecord, claim: &Claim) -> Result<LeaseRecord, ErrLock> {
        own(&self.lease, self.inner.update(seen, claim).await?)
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        let lease = self.lease.clone();
        let events = self.inner.watch().await?.map(move |event| match event? {
            LeaseEvent::Seen(record) => own(&lease, record).map(LeaseEvent::Seen),
            LeaseEvent::Deleted(record) => own(&lease, record).map(LeaseEvent::Deleted),
        });
        Ok(events.boxed())
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.inner.reconnect()
    }
}

fn own(lease: &LeaseName, record: LeaseRecord) -> Result<LeaseRecord, ErrLock> {
    let (namespace, name) = (record.namespace(), record.name());
    if namespace == lease.namespace() && name == lease.name() {
        return Ok(record);
    }
    let message = format!("the lock of the lease {lease} answered with the lease {namespace}/{name}");
    Err(ErrLock::new(ErrLockKind::Garbage, message))
}
