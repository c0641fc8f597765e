//! A watch that stands and tells nothing, over a half-open connection, say.

use crate::support::{SOON, build, builder, leading, pass, until, within};
use futures_util::stream::{self, Pending};
use kube_client::Client;
use kube_leader_gate::{
    Election, LeaseTiming,
    election::BuildError,
    lease::{Claim, KubeLock, LeaseEvent, LeaseName, LeaseRecord, Lock, LockError},
    testing::ApiServer,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

struct Mute {
    inner: KubeLock,
    watches: Arc<AtomicU32>,
}

impl Lock for Mute {
    type Events = Pending<Result<LeaseEvent, LockError>>;

    fn name(&self) -> &LeaseName {
        self.inner.name()
    }

    async fn get(&self) -> Result<Option<LeaseRecord>, LockError> {
        self.inner.get().await
    }

    async fn create(&self, claim: &Claim) -> Result<LeaseRecord, LockError> {
        self.inner.create(claim).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &Claim) -> Result<LeaseRecord, LockError> {
        self.inner.update(seen, claim).await
    }

    async fn watch(&self) -> Result<Self::Events, LockError> {
        self.watches.fetch_add(1, Ordering::SeqCst);
        Ok(stream::pending())
    }
}

fn mute(server: &ApiServer, identity: &str) -> (Election<Mute>, Arc<AtomicU32>) {
    let watches = Arc::new(AtomicU32::new(0));
    let (service, counter) = (server.service().user(identity), watches.clone());
    let election = builder(identity).build_with(|lease| {
        let connect = move || Ok(Client::new(service.clone(), "default"));
        let inner = KubeLock::over(lease, connect).map_err(BuildError::Client)?;
        Ok(Mute { inner, watches: counter })
    });
    (election.expect("a valid election"), watches)
}

#[tokio::test(start_paused = true)]
async fn a_release_behind_a_silent_watch_is_seen_within_a_few_retry_periods() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let (b, watches) = mute(&server, "b");
    let b = b.start();
    until(SOON, "b knows a", || b.leader().holder().is_some()).await;
    pass(Duration::from_secs(60)).await;
    assert!(!b.leader().is_leader(), "a renews");
    assert!(watches.load(Ordering::SeqCst) > 5, "the watch is started afresh");
    a.stop().await;
    within(Duration::from_millis(4100), "b leads", b.leader().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_with_a_silent_watch_starts_it_afresh() {
    let server = ApiServer::new();
    let (a, watches) = mute(&server, "a");
    let a = a.start();
    within(SOON, "it leads", a.leader().elected()).await;
    pass(Duration::from_secs(60)).await;
    assert!(a.leader().is_leader());
    assert!(watches.load(Ordering::SeqCst) > 5);
}

/// To a follower with a silent watch, a holder with a short lease seems to have run out each time.
#[tokio::test(start_paused = true)]
async fn s6_a_follower_reads_before_it_swaps() {
    let server = ApiServer::new();
    let (lease, renew) = (Duration::from_secs(3), Duration::from_secs(2));
    let timing = LeaseTiming::new(lease, renew, Duration::from_millis(500)).unwrap();
    let a = build(&server, "a", builder("a").timing(timing)).unwrap().start();
    within(SOON, "a leads", a.leader().elected()).await;
    let b = mute(&server, "b").0.start();
    until(SOON, "b knows a", || b.leader().holder().is_some()).await;
    let reads = server.reads("b", "get", "leases");
    pass(Duration::from_secs(60)).await;
    assert!(server.reads("b", "get", "leases") >= reads + 15, "b looks when a's time seems to be over");
    assert!(server.write_log().iter().all(|write| write.user == "a"));
}
