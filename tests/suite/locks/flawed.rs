//! A lock over a real one that misbehaves in one way.

use crate::support::builder;
use futures_util::{StreamExt, stream, stream::BoxStream};
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::ElectionBuilder,
    lease::{BoxLock, ErrLock, ErrLockKind, LeaseEvent, LeasePool, LeaseRecord, LeaseUpdate, Lock},
    testing::ApiServer,
};
use std::{
    convert::Infallible,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

#[derive(Clone)]
pub enum Flaw {
    /// The next update panics once this is set.
    Panics(Arc<AtomicBool>),
    /// The lock carries creations out, and answers with an error.
    Denies,
    /// A webhook shortens the duration of each claim.
    Shortens,
    /// Every renewal has the same time.
    StandsStill,
    /// Writing calls go on after the candidate has given them up.
    Outlives,
    /// Watches stay open and send no event. They are counted.
    Mute(Arc<AtomicU32>),
    /// Resource versions are no numbers.
    Spells,
}

pub struct Flawed {
    inner: BoxLock,
    flaw: Flaw,
}

/// A candidate over such a lock.
pub fn flawed(server: &ApiServer, identity: &str, flaw: Flaw) -> Election {
    flawed_from(server, identity, builder(identity), flaw)
}

pub fn flawed_from(server: &ApiServer, user: &str, builder: ElectionBuilder, flaw: Flaw) -> Election {
    let service = server.service().user(user);
    let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client");
    let election = builder.build_with(|lease| Ok::<_, Infallible>(Flawed { inner: pool.lock(lease), flaw }));
    election.expect("a valid election")
}

impl Flawed {
    fn stored(&self, claim: &LeaseUpdate) -> LeaseUpdate {
        let mut claim = claim.clone();
        if matches!(self.flaw, Flaw::Shortens) {
            claim.duration_seconds = 1;
        }
        if matches!(self.flaw, Flaw::StandsStill) {
            claim.renew_time = "2026-01-02T03:04:05.000000Z".into();
        }
        claim
    }

    /// The lease as it reaches the election.
    fn shown(&self, record: LeaseRecord) -> LeaseRecord {
        if matches!(self.flaw, Flaw::Spells) { spelled(record) } else { record }
    }

    async fn sent(
        &self,
        call: impl Future<Output = Result<LeaseRecord, ErrLock>> + Send + 'static,
    ) -> Result<LeaseRecord, ErrLock> {
        if !matches!(self.flaw, Flaw::Outlives) {
            return call.await;
        }
        tokio::spawn(call).await.expect("it does not panic")
    }
}

impl Lock for Flawed {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        Ok(self.inner.get().await?.map(|record| self.shown(record)))
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let (inner, claim) = (self.inner.clone(), self.stored(claim));
        let created = self.sent(async move { inner.create(&claim).await }).await;
        let denied = ErrLock::new(ErrLockKind::Refused, "500: an internal error");
        if matches!(self.flaw, Flaw::Denies) { Err(denied) } else { Ok(self.shown(created?)) }
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        if let Flaw::Panics(now) = &self.flaw {
            assert!(!now.load(Ordering::SeqCst), "the lock breaks");
        }
        let seen = respelled(seen.clone(), |version| version.trim_start_matches("version ").to_owned());
        let (inner, claim) = (self.inner.clone(), self.stored(claim));
        Ok(self.shown(self.sent(async move { inner.update(&seen, &claim).await }).await?))
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        match &self.flaw {
            Flaw::Mute(watches) => {
                watches.fetch_add(1, Ordering::SeqCst);
                Ok(stream::pending().boxed())
            }
            Flaw::Spells => Ok(self.inner.watch().await?.map(|event| Ok(shown(event?))).boxed()),
            _ => self.inner.watch().await,
        }
    }
}

fn respelled(record: LeaseRecord, spell: impl Fn(&str) -> String) -> LeaseRecord {
    let version = spell(record.resource_version());
    let mut object = record.into_json();
    object["metadata"]["resourceVersion"] = version.into();
    LeaseRecord::from_json(object).expect("it has a uid and a version")
}

fn spelled(record: LeaseRecord) -> LeaseRecord {
    respelled(record, |version| format!("version {version}"))
}

fn shown(event: LeaseEvent) -> LeaseEvent {
    match event {
        LeaseEvent::Seen(record) => LeaseEvent::Seen(spelled(record)),
        LeaseEvent::Deleted(record) => LeaseEvent::Deleted(spelled(record)),
        other => panic!("{other:?}"),
    }
}
