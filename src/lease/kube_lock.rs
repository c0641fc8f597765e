//! The lock over kube-client.

use super::{
    error::{ErrLock, ErrLockKind},
    lock::{LeaseEvent, Lock},
    name::LeaseName,
    pool::{
        clients::{Caller, Clients},
        watches::Member,
    },
    record::{Claim, LeaseRecord},
    watch_line,
};
use crate::{api, defect};
use futures_util::{Stream, StreamExt, future, stream, stream::BoxStream};
use http::Method;
use kube_client::{Client, Config, client::Body};
use serde_json::Value;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// One Lease, over kube clients that the workload does not use: no gate, no retries below
/// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)). The clients belong to this lock or to
/// a [`LeasePool`](super::LeasePool).
///
/// The lock keeps the object as JSON, so that unknown fields survive
/// ([rule S12](crate::guide::guarantees#s12-foreign-fields-survive)). It reads at most 3 MiB of an answer.
pub struct KubeLock {
    lease: LeaseName,
    path: String,
    caller: Caller,
    /// This lock's place among the locks that share a watch.
    member: Option<Member>,
    /// The newest version of the lease in an answer to a call.
    known: AtomicU64,
}

// === impl KubeLock ===

impl KubeLock {
    /// Makes a lock on `lease`, over its own client made from `config`.
    ///
    /// # Errors
    /// The errors of [`LeasePool::new`](super::LeasePool::new).
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
    pub fn new(config: &Config, lease: LeaseName) -> Result<Self, kube_client::Error> {
        Ok(Self::alone(lease, &Clients::from_config(config)?))
    }

    /// Makes a lock on `lease`, over clients that `connect` makes: one now, and a fresh one after each call that was
    /// not answered in time ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)). These
    /// clients must not retry, and must not share a limit or a buffer with the workload
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    ///
    /// # Errors
    /// The errors of `connect`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn over(
        lease: LeaseName,
        connect: impl Fn() -> Result<Client, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Self, kube_client::Error> {
        Ok(Self::alone(lease, &Clients::new(connect)?))
    }

    /// Shares its clients with no other lock, so it never waits for room.
    fn alone(lease: LeaseName, clients: &Arc<Clients>) -> Self {
        Self::with(lease, clients.caller(Duration::ZERO), None)
    }

    pub(super) fn with(lease: LeaseName, caller: Caller, member: Option<Member>) -> Self {
        let path = watch_line::collection(lease.namespace());
        Self { lease, path, caller, member, known: AtomicU64::new(0) }
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<LeaseRecord, ErrLock> {
        let answer = self.caller.call(method, path, body).await?;
        let record = LeaseRecord::from_json(answer)
            .map_err(|error| ErrLock::new(ErrLockKind::Garbage, error.to_string()))?;
        self.known.fetch_max(record.version().unwrap_or(0), Ordering::Relaxed);
        Ok(record)
    }

    fn object(&self) -> String {
        format!("{}/{}", self.path, self.lease.name())
    }
}

impl Lock for KubeLock {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        match self.call(Method::GET, &self.object(), None).await {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == ErrLockKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, claim: &Claim) -> Result<LeaseRecord, ErrLock> {
        let lease = claim.new_lease(&self.lease);
        self.call(Method::POST, &self.path, Some(&lease)).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &Claim) -> Result<LeaseRecord, ErrLock> {
        let mut lease = seen.with(claim).into_json();
        if let Some(metadata) = lease["metadata"].as_object_mut()
            && defect::is_back("writes-without-version")
        {
            metadata.remove("resourceVersion");
        }
        self.call(Method::PUT, &self.object(), Some(&lease)).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        if let Some(member) = &self.member
            && let Some(joined) = member.join(&self.lease, self.known.load(Ordering::Relaxed)).await?
        {
            // A watch begins with the present lease. A lock that joins late has missed that, so it reads the lease.
            let first = if joined.is_late() { self.get().await? } else { None };
            let first = first.map(|record| Ok(LeaseEvent::Seen(record)));
            return Ok(stream::iter(first).chain(joined.events()).boxed());
        }
        let body = self.caller.watch(&watch_line::of_one(&self.lease)).await?;
        Ok(events(body, self.lease.name().to_owned()).boxed())
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.caller.reconnect()
    }
}

impl fmt::Debug for KubeLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeLock").field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// Turns the lines of a watch into events of the lease `name`. If a server ignores the selector, events of other
/// leases are dropped.
fn events(body: Body, name: String) -> impl Stream<Item = Result<LeaseEvent, ErrLock>> + Send {
    api::lines(body).filter_map(move |line| {
        let news = line.map_err(ErrLock::from).and_then(|line| watch_line::news(&line)).transpose();
        future::ready(match news {
            Some(Ok(news)) => (news.name == name).then_some(news.event),
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    })
}

#[cfg(all(test, feature = "test-util"))]
#[path = "kube_lock_tests.rs"]
mod tests;
